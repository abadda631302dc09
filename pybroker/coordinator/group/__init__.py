"""The group coordinator: members, assignments and committed offsets, in the partitions of `__consumer_offsets`.

`service` routes a group to its partition, loads and unloads partitions and drives one `machine` for each. The machine
passes an event to `classic` or `modern` by the type of the group, to `offsets` or to `admin`; each of these functions
takes (view, event, now). Must not know requests' envelopes or where the log is stored.
"""
