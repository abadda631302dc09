"""Groups of the consumer protocol (KIP-848): the broker assigns, and members follow step by step.

Owns the group as an immutable value, its records, and every decision about it as a function of values: heartbeats, the
target assignment, reconciliation, leaving and fencing, and the ways to and from the classic protocol. Must not know
how records are stored, nor read a clock: time and new ids are arguments.

A heartbeat's way: `heartbeat` checks it and updates the member, `subscription` says which topics that means, `target`
has an assignor make a new target when the group's epoch has risen, and `reconciliation` moves the member towards it.
"""
