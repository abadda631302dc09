"""The controller: decides changes of the cluster metadata and replicates them through the metadata quorum.

Must not know handlers, connections or partitions' logs.

    cluster        decides: a pure state machine
    quorum         replicates: Raft, the metadata log
    service        opens and replays the log, drives the machine while this voter is the leader
    channel        the state of the quorum, as its leader reports it
    local_channel  the channel to the controller in this process
"""
