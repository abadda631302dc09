"""The transaction coordinator: who has a transactional id, and how far its transaction is (KIP-98, KIP-360, KIP-890).

`service` routes a transactional id to its partition of `__transaction_state`, drives one `machine` for each partition
that this broker leads, and has `markers` sent when a transaction has been prepared. Everything that decides is a
function of (view, event, now). Must not know requests' envelopes, where a log lies, or how another broker is reached.
"""
