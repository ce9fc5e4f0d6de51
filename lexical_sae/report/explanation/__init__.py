"""An explanation for people: terminal, notebook, page."""
