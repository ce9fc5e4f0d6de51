"""Baselines on the same rows: the encoder without words in between, fine-tuned or frozen, and TF-IDF."""
