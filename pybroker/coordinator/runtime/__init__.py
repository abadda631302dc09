"""The coordinator runtime: the common part of coordinators of every kind, each with its own internal topic.

`service` has one shard for each partition of the topic that this broker leads: its election, the loading of its log,
its machine with the runner, its resignation. `commits` is the only place that waits for the commit of an append. The
specifics of a kind (topic name, partition of a key, machines, record codec) are passed as a `CoordinatorKind`. Must not
know any kind, nor requests' envelopes, nor where a log is stored.
"""
