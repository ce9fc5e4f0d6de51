"""The model: from token ids to a `CircuitState`.

pretrained, backbone   a masked-LM encoder and its decoder: found and loaded, taken apart
projection, layers     from hidden states to the logits of words: gate, saturation, pooling, literal words
literal_reading, projected_reading    the words of a batch, by either kind of model; `encoded` is what they return
long_texts             texts that are read in windows
heads, table_head      from the sparse vector to logits, with exact effective weights
lexical_sae            `LexicalSAE`, which joins them; `assembly` is what a new one is made of, `word_views` change one
circuit_state, sparse_code    what decisions and active words are kept as
persistence            saving and loading; `bundled` is the encoder that comes with the package
"""
