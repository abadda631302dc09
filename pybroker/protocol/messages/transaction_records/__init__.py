"""The records of `__transaction_state`, in Kafka's own schemas: one module per record, its key and its value.

Owns which declarations a record type has. A record's key begins with its type, two bytes, and its value with its
version, two bytes.
"""

TRANSACTION_RECORDS = {0: "TransactionLog"}
"""Kafka's numbers of the records; the classes are named so with `Key` and `Value`."""
