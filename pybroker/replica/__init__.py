"""One broker's replicas: applies the metadata to open partitions and to the topic table of the data plane.

Owns becoming leader, and the topic table that Produce and Fetch use. Must not elect leaders (the controller does) and
must not know requests.

    native     the gateway to Rust
    roles      image -> leader or follower
    sources    image -> endpoints to fetch from; settings of replication
    in_sync    caught-up or lagging replicas -> ISR changes sent to the controller
    deletions  records deleted by the leader -> deleted by all live replicas
    throttled  topic configuration -> throttled replicas
    read_replicas  image -> racks of replicas that consumers may fetch from
    endpoints  image -> the other brokers' endpoints in responses
    publisher  metadata delta -> opened and deleted partitions -> topic table
"""
