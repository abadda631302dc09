"""The life of one broker: its states, its registration with the controller, its settings in force, its end.

Owns what a broker is to the cluster beside the partitions that it serves. Must not know partitions' roles (those are
`replica`'s), groups or requests; the node hands in what has to be called.

    broker_state       the states of a broker's life
    directory_reports  the order of the reports on log directories
    ending             how a part comes to its end
    live_config        the broker's settings while it runs
    producer_ids       the block of producer ids that this broker gives out
"""
