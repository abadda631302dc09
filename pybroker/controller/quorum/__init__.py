"""Agreement: the Raft library, the metadata log and the vote that survives a restart.

Owns the directory `__cluster_metadata-0`. Must not know what the records say.
"""
