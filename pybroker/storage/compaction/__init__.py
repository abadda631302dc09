"""The log cleaner, and its stored state of each log."""
