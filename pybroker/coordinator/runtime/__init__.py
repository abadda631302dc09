"""The coordinator runtime: what coordinators of every kind have in common, each over an internal topic of its own.

`service` has one shard for each partition of the topic that this broker leads: its election, the loading of its log,
its machine with the runner, its resignation. `commits` is the one place that waits until an append is committed. What
is particular to a kind (the topic's name, how a key maps to a partition, machines, the codec of records) is handed in
as a `CoordinatorKind`. Must not know any kind, nor requests' envelopes, nor where a log lies.
"""
