"""Studies for people: tables and pages."""
