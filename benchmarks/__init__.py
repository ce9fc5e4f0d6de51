"""How fast, and how much memory: measured against what one would write without this package."""
