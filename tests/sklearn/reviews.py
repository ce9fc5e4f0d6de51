"""Reviews in the words of the tiny encoder."""

from tests.tiny import BAD, GOOD

TEXTS = [f"{one} {other}" for some in (GOOD, BAD) for one in some for other in some] * 2
LABELS = (["good"] * 16 + ["bad"] * 16) * 2
