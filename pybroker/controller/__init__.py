"""The controller: decides what the cluster's metadata becomes, and gets it agreed on.

Two rooms and a face: `cluster` decides (a pure machine), `quorum` agrees (Raft, the metadata log), `service` is what
the rest of the broker calls. Must not know handlers, connections or partitions' logs.
"""
