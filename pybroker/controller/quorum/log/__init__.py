"""The metadata log on disk: its vote, its position, what it has lost, and how it is served."""
