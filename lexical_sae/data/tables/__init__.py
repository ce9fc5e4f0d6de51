"""Files, frames and streams, read into rows with the place that each came from.

decoding             bytes to text, whatever the encoding
csv_rows, json_rows  the rows of a text file, with their lines; `formats` picks by name, and has the binary ones
frames               rows that pandas, polars, pyarrow, DuckDB or Hugging Face hold
streams              a file too large for memory, a block at a time
table, cell_values   what all become: rows, and what one cell may hold
columns              which of them hold the texts and the labels
"""
