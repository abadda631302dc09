"""The embedded runner: a topology in this process, its threads, clients, state and queries."""
