"""Keys of streams groups (KIP-1071), in which the broker assigns the tasks of Kafka Streams applications."""

from __future__ import annotations

from pybroker.config.key import Kind, integer, listing, long, no_items, unserved
from pybroker.config.settings import Settings


class StreamsGroupKeys(Settings):
    """The streams protocol in the group coordinator."""

    group_streams_session_timeout_ms = integer(
        45_000, "Time in ms without a heartbeat after which a member is removed from its streams group.", at_least=1
    )
    group_streams_min_session_timeout_ms = integer(
        45_000, "Minimum session timeout in ms that a streams group can be configured with.", at_least=1
    )
    group_streams_max_session_timeout_ms = integer(
        60_000, "Maximum session timeout in ms that a streams group can be configured with.", at_least=1
    )
    group_streams_heartbeat_interval_ms = integer(
        5000, "Time in ms between the heartbeats of a member of a streams group.", at_least=1
    )
    group_streams_min_heartbeat_interval_ms = integer(
        5000, "Minimum heartbeat interval in ms that a streams group can be configured with.", at_least=1
    )
    group_streams_max_heartbeat_interval_ms = integer(
        15_000, "Maximum heartbeat interval in ms that a streams group can be configured with.", at_least=1
    )
    group_streams_max_size = integer(2**31 - 1, "Maximum number of members of a streams group.", at_least=1)
    group_streams_num_standby_replicas = integer(
        0, "Number of standby tasks for each task with state in a streams group.", at_least=0
    )
    group_streams_max_standby_replicas = integer(
        2, "Maximum number of standby tasks that a streams group can be configured with.", at_least=0
    )
    group_streams_num_warmup_replicas = integer(
        2, "Maximum number of warm-up tasks of a streams group at one time.", at_least=0
    )
    group_streams_max_warmup_replicas = integer(
        20, "Maximum number of warm-up tasks that a streams group can be configured with.", at_least=0
    )
    group_streams_acceptable_recovery_lag = long(
        10_000, "Maximum lag, in records, of a task that is considered caught up in a streams group.", at_least=0
    )
    group_streams_task_offset_interval_ms = integer(
        60_000, "Time in ms between reports of task offsets by a member of a streams group.", at_least=1
    )
    group_streams_min_task_offset_interval_ms = integer(
        15_000, "Minimum time in ms between reports of task offsets that can be configured.", at_least=1
    )
    group_streams_initial_rebalance_delay_ms = integer(
        3000, "Time in ms that an empty streams group waits for more members after the first.", at_least=0
    )
    group_streams_assignment_interval_ms = integer(
        1000,
        "Minimum time in ms between two target assignments of a streams group.",
        at_least=0,
        dynamic=True,
    )
    group_streams_min_assignment_interval_ms = integer(
        0, "Minimum assignment interval in ms that a streams group can be configured with.", at_least=0
    )
    group_streams_max_assignment_interval_ms = integer(
        15_000, "Maximum assignment interval in ms that a streams group can be configured with.", at_least=0
    )
    group_streams_assignors = listing(
        ("sticky",),
        "Assignors that streams groups can be configured with. The first one is the default.",
        each_of=("sticky",),
        empty=False,
    )
    group_streams_rack_aware_assignment_tags = no_items(
        "Client tags by which standby tasks of a streams group are distributed. Only an empty list is accepted."
    )
    group_streams_topology_description_plugin_class = unserved(
        Kind.CLASS, "Class of a plugin that stores descriptions of topologies. No class can be loaded."
    )
