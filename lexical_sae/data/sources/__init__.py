"""Where data sets come from, and how each is laid out."""
