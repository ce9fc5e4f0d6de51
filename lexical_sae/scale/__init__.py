"""Explanations of many texts as a table: Parquet files with a row per text, and the words behind each decision.

Needs pyarrow and duckdb: `pip install 'lexical-sae[scale]'`.
"""
