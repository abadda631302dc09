"""Log directories: whose they are, their small files, and what is written at a stop."""
