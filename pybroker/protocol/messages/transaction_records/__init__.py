"""The records of `__transaction_state`, in Kafka's own schemas: one module per record, with its key and its value.

Owns the names of the declarations of each record type. A key begins with the record type in two bytes, a value with its
version in two bytes.
"""

TRANSACTION_RECORDS = {0: "TransactionLog"}
"""The records by their number in Kafka. Their classes have these names plus `Key` or `Value`."""
