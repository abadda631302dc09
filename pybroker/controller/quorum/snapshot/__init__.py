"""Snapshots of the metadata log: when they are due, how they are written, fetched and removed."""
