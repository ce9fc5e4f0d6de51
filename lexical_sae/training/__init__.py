"""Training: a model, a task and settings in; the best weights out.

loop, steps         the one loop; what a step does with a batch
tasks, samples      what is learned from: documents, positions or both; and as the model encodes them
preparation         what is found out before the first step
loss, optim         what is minimised, and by which optimiser
stopping            which epoch to keep, and when to stop
resuming            checkpoints: saving and going on, bit by bit
frozen_layers       lower layers that stay as they are, their states kept
folds, word_table, table_choice, certain_rows, word_prior    the table of literal words
word_vectors        word vectors that learn together
processes           several processes under `torchrun`
callbacks, settings who is told; every key of `training`
baselines           dense, frozen and TF-IDF baselines
"""
