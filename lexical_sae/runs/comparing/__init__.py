"""Several experiments of one file (`variants`), each summed up (`summary`), compared or swept over a key."""
