"""One shape for every state machine, and the one runner that drives them.

A machine's `handle` reads and decides but changes nothing; its `apply` changes and decides nothing. Load, follower and
leader run the same `apply`. Must not know any particular machine, nor what a record is.
"""
