"""Training and measuring taggers."""
