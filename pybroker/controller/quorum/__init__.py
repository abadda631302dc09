"""The metadata quorum: the Raft library, the metadata log and the persistent vote.

Owns the directory `__cluster_metadata-0`. Must not know the content of records.
"""
