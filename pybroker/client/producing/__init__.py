"""Producers: batches of records, and their acknowledgements."""
