"""What is measured of a run, each in a file beside its model: scores, metrics, name tests, baselines."""
