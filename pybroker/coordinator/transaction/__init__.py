"""The transaction coordinator: the producer and the transaction of each transactional id (KIP-98, KIP-360, KIP-890).

`service` routes a transactional id to its partition of `__transaction_state`, drives one `machine` for each partition
that this broker leads, and sends markers through `markers` when a transaction is prepared. Each decision is a function
of (view, event, now). Must not know requests' envelopes, where a log is stored, or connections to other brokers.
"""
