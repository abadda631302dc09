"""Log directories as the control plane sees them: whose they are, what is in them, what is written at a stop.

Owns locks, `meta.properties`, checkpoint and clean-shutdown files, and the set of open partitions. Must not touch a
record, decide who leads, or speak to a client. A request meets this package when a handler asks a partition for an
offset, and when a new topic's logs are opened before its creator gets an answer.

    log_directory    one directory: lock, identity, clean-shutdown file
    directories      all of them together: agreement, formatting, placement
    meta_properties  Kafka's meta.properties, version 1
    checkpoint       Kafka's text files of offsets by partition
    log_config       a topic's settings as the native log wants them
    opening          many logs at once: threads by directory, and how far a recovery is
    partition_directory  a partition's directory from outside: name, owner, stray
    losses           what openings have found missing: said, summed up, read back
    verification     a stopped broker's directories checked without changing them
    last_run         what the last run wrote down in a directory
    partitions       the open partitions
    moves            logs on their way to another directory
    chores           what is done again and again
    upkeep           all of that together with retention, compaction and moves, from its beginning to its end
    native           the gateway to Rust
"""
