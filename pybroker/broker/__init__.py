"""The life of one broker: its states, its registration with the controller, its settings in force, its end.

Owns what a broker is to the cluster beside the partitions that it serves. Must not know partitions' roles (those are
`replica`'s), groups or requests; the node hands in what has to be called.

    life               from start to stop, by the states of broker_state
    registration       the broker as the controller knows it; its reports, in the order of directory_reports
    live_config        the broker's settings while it runs
    producer_ids       the block of producer ids that this broker gives out
    failures           log directories that fail, and what the broker cannot go on after
    shut_down          which part ends after which
"""
