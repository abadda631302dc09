"""Consumers and fetchers: positions, commits, and records as objects, text or columns."""
