"""Groups of the streams protocol (KIP-1071): the broker assigns the tasks of a Kafka Streams application.

Owns the group as an immutable value, its records, and every decision about it as a function of values: heartbeats, the
topology and its internal topics, the target assignment, reconciliation, leaving and fencing. Must not know how records
are stored, nor read a clock: time is an argument. Topics are created by the handler.

Steps of a heartbeat: `heartbeat` validates it and updates the member, `topology` the topology, `configuration` resolves
its topics, `target` computes a new target if the group's epoch has increased, and `reconciliation` moves the member
towards the target.
"""
