"""The model: from token ids to a `CircuitState`.

backbone            a pretrained masked-LM encoder and its decoder
projection, layers  from hidden states to the sparse vector over words: gate, saturation, pooling, literal words
heads, table_head   from the sparse vector to logits, with exact effective weights
lexical_sae         `LexicalSAE`, which joins them; `circuit_state` and `sparse_code` are what it returns
persistence         saving and loading; `bundled` is the encoder that comes with the package
"""
