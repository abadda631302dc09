"""Connections to brokers, and when a call is tried again."""
