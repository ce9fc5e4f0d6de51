"""What a decision rests on, exactly.

attribution         contributions of words to a class
span_aggregation    contributions of words of the vocabulary as scores of words of the text
exact               effects of removal, path attribution, contrasts between classes
minimal_sets        the fewest words that change a decision or are enough for it, with proof
sae                 a post-hoc sparse autoencoder on hidden states
"""
