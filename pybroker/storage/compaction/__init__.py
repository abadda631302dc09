"""The log cleaner, and what it remembers of each log."""
