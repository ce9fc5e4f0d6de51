"""Questions about a scored table: what drives each class, by group and over time, what changed, what is odd.

Reads the Parquet files of `score` with DuckDB, in bounded memory: `pip install 'lexical-sae[scale]'`.
"""
