"""The group coordinator: who reads what, and how far, in the partitions of `__consumer_offsets`.

`service` routes a group to its partition, loads and unloads partitions and drives one `machine` for each. The machine
hands an event to `classic` or `modern` by the type of the group, to `offsets` or to `admin`; everything there is a
function of (view, event, now). Must not know requests' envelopes or where the log lies.
"""
