"""The interchangeable parts between the word logits and the sparse vector."""
