"""Admin: its calls by subject, and the plain values that they take and give."""
