"""The lifecycle of one broker: its states, its registration with the controller, its settings in force, its shutdown.

Owns a broker's membership in the cluster. Must not know partitions' roles (see `replica`), groups or requests; the node
passes the callbacks.

    life               the steps from start to stop, with the states of broker_state
    registration       the broker's registration and its reports, in the order of directory_reports
    live_config        the broker's settings while it runs
    producer_ids       the block of producer ids that this broker assigns
    failures           failed log directories, and failures that end the broker
    shut_down          the order in which parts end
"""
