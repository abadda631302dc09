"""The common part of consumer groups (KIP-848) and streams groups (KIP-1071), as Kafka's `ModernGroup`.

Members of both reconcile with a target assignment that the coordinator computes. Owns the identity, the epochs and the
timers of members, the checks of commits and heartbeats, and the bookkeeping of decisions and records. Must not know
what an assignment contains: `modern` and `streams` do.
"""
