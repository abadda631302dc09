"""Client metrics (KIP-714): which clients push which metrics, and the receivers of pushes.

Owns the client instances, their subscriptions and the receivers. Must not know handlers, or how subscriptions
change: these are configs in the metadata image. A push is validated by `service`, decompressed by `receivers` on a
thread of its own, and passed to each receiver there. `last_values` is the built-in receiver.
"""
