"""The records of `__share_group_state` (KIP-932), in Kafka's own schemas: one module per record, with key and value.

Owns the names of the declarations of each record type. A key begins with the record type in two bytes, a value with its
version in two bytes.
"""

SHARE_RECORDS = {0: "ShareSnapshot", 1: "ShareUpdate"}
"""The records by their number in Kafka. Their classes have these names plus `Key` or `Value`."""
