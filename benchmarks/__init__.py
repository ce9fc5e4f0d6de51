"""How fast, and how much memory: measured against what a user would write without this package."""
