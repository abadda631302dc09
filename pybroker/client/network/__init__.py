"""Connections to brokers, and retries of calls."""
