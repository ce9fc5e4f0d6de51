"""What a circuit is, and how one is asked for in training."""
