"""Circuit objective: losses, the terms that weigh and track them, balances between terms, and the GECO constraint."""
