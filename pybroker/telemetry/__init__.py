"""Metrics that clients push (KIP-714): who is asked for what, and who gets what comes.

Owns the clients' instances, their subscriptions and the receivers. Must not know handlers, nor how subscriptions are
changed: they are configurations in the metadata image. The way of a push: `service` judges it, `receivers` decompresses
it on a thread of its own, and each receiver gets it there; `last_values` is the one that is built in.
"""
