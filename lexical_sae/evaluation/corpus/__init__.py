"""A model seen over a whole corpus: the words of each class, its regions, and two models side by side."""
