"""Producers: records into batches, and what became of them."""
