"""Admin: its calls, one module for each subject, and their arguments and results as plain values."""
