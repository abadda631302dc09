"""Log directories from the control plane's view: identity, locks, open partitions, and the files of a clean shutdown.

Owns locks, `meta.properties`, checkpoint and clean-shutdown files, and the set of open partitions. Must not read
records, elect leaders, or communicate with clients. A request uses this package when a handler reads an offset of a
partition, and when a new topic's logs are opened before the CreateTopics response.

    log_directory    one directory: lock, identity, clean-shutdown file
    directories      all log directories together: consistency, formatting, placement
    meta_properties  Kafka's meta.properties, version 1
    checkpoint       Kafka's text files of offsets by partition
    log_config       the configuration of a topic's native log
    opening          opening of many logs at once: threads by directory, recovery progress
    partition_directory  a partition's directory from outside: name, topic, stray
    losses           lost records found on opening: logged, counted, read back
    verification     a stopped broker's directories checked without changing them
    last_run         the files that the previous run wrote in a directory
    partitions       the open partitions
    moves            replicas that move to another directory
    background_tasks periodic tasks
    maintenance      all background tasks, with retention, compaction and moves, from start to stop
    native           the gateway to Rust
"""
