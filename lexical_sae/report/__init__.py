"""What people look at: terminal, notebook and HTML views of plain data."""
