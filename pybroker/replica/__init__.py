"""One broker's replicas: metadata becomes open partitions and a table in the data plane.

Owns becoming leader, and the topic table that the hot path of Produce and Fetch sees. Must not decide who leads (that
is the controller's) and must not know requests.

    native     the gateway to Rust
    roles      image -> leader or follower
    sources    image -> where the others are fetched from; settings of replication
    in_sync    who caught up or lags -> what the controller is asked
    deletions  records deleted by the leader -> deleted by all live replicas
    throttled  topic settings -> which replicas are throttled
    read_replicas  image -> which racks consumers are sent to
    endpoints  image -> where clients find the other brokers
    publisher  metadata delta -> opened and deleted partitions -> topic table
"""
