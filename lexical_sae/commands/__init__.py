"""What `lexical-sae` can do, one command after the other."""
