"""Errors that a user can put right.

The command line shows these as one sentence; any other exception is a bug, and keeps its traceback.
"""


class LexicalSAEError(ValueError):
    """Base of all errors that a user can put right; the message gives the value, the place and the remedy."""


class DataError(LexicalSAEError):
    """Texts, labels or tags that cannot be used: a missing column, an empty row, an unknown label."""


class SettingsError(LexicalSAEError):
    """A key, value, option or argument that is not allowed, alone or together with others."""


class SavedFileError(LexicalSAEError):
    """A run, model, certificate or other saved file that is missing, damaged or about something else."""


class DamagedWeightsError(SavedFileError, FloatingPointError):
    """Weights that give numbers that are none (NaN, infinity)."""


class UnavailableError(LexicalSAEError, RuntimeError):
    """What this machine lacks: a device, or a file that cannot be downloaded."""


class MissingPackageError(UnavailableError, ImportError):
    """An optional package that is not installed; the message says how to install it."""


class TrainingError(LexicalSAEError):
    """Training that cannot go on; the message says what to change."""


class DivergedError(TrainingError, FloatingPointError):
    """A loss, gradient or constraint that is no longer a number."""


class TooLargeError(TrainingError, MemoryError):
    """Not even one text at a time fits in memory."""
