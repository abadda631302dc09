"""One broker's part in the cluster: metadata becomes open partitions and a table in the data plane.

Owns becoming leader, the topic table that the hot path of Produce and Fetch sees, the broker's life, and its block of
producer ids. Must not decide who leads (that is the controller's) and must not know requests.

    native        the gateway to Rust
    publisher     metadata delta -> opened and deleted partitions -> topic table
    broker_state  the states of a broker's life
    producer_ids  the block of producer ids that this broker gives out
"""
