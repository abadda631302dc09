"""Groups of the consumer protocol (KIP-848): the broker assigns partitions, and members reconcile step by step.

Owns the group as an immutable value, its records, and every decision about it as a function of values: heartbeats, the
target assignment, reconciliation, leaving and fencing, and the conversions from and to the classic protocol. Must not
know how records are stored, nor read a clock: time and new ids are arguments.

Steps of a heartbeat: `heartbeat` validates it and updates the member, `subscription` resolves its topics, `target`
computes a new target if the group's epoch has increased, and `reconciliation` moves the member towards the target.
"""
