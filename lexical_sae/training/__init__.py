"""Training: a model, a task and settings in; the best weights out.

loop, tasks         the one loop, for documents and positions
criterion, optim    what is minimized, and by which optimizer
stopping            which epoch to keep
checkpoint          saving and resuming, bit by bit; `random_state` belongs to it
batch_size, lr_range, calibrate, time_plan     what is found out before training
frozen_layers       lower layers that stay as they are, their states kept
word_table, word_vectors, auxiliary_head, folds, independence     parts of some recipes
dense               the dense baselines
"""
