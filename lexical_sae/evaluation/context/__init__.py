"""Context measures: how much of a decision is in the words, and how much in what context makes of them.

The deletion and substitution tests show that a feature goes when its word goes. They cannot show that a word means the
same in every sentence: a model may hide the label in *which* features a neutral word activates, or how strongly. Each
measure is a file: context-free accuracy (`accuracy`), label leakage in points and bits (`leakage`), context shifts
(`shifts`), minimal pairs, antonyms and negation (`sentiment`), independence (`independence`). `measure_context`
(`measuring`) takes them all, for any model that answers as a `ContextModel` (`model`).
"""
