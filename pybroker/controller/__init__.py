"""The controller: decides what the cluster's metadata becomes, and gets it agreed on.

Must not know handlers, connections or partitions' logs.

    cluster        decides: a pure machine
    quorum         agrees: Raft, the metadata log
    service        opens, replays, leads, resigns: where the two meet
    channel        what handlers may ask the controller for, wherever it is
    local_channel  the channel to the controller in this process
"""
