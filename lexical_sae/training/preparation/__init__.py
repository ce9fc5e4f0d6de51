"""What is found out before the first step: a batch that fits, open words, a learning rate, a plan for the minutes."""
