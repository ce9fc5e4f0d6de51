"""Going on where a run stopped, bit by bit: checkpoints, and the state of every source of chance."""
