"""Keys of groups of the consumer protocol (KIP-848), in which the broker computes assignments."""

from __future__ import annotations

from pybroker.config.key import integer, listing, string
from pybroker.config.settings import Settings


class ConsumerGroupKeys(Settings):
    """The consumer protocol in the group coordinator."""

    group_consumer_session_timeout_ms = integer(
        45_000, "Time in ms without a heartbeat after which a member is removed from its group.", at_least=1
    )
    group_consumer_min_session_timeout_ms = integer(
        45_000, "Minimum session timeout in ms that can be configured.", at_least=1
    )
    group_consumer_max_session_timeout_ms = integer(
        60_000, "Maximum session timeout in ms that can be configured.", at_least=1
    )
    group_consumer_heartbeat_interval_ms = integer(5000, "Time in ms between the heartbeats of a member.", at_least=1)
    group_consumer_min_heartbeat_interval_ms = integer(
        5000, "Minimum heartbeat interval in ms that can be configured.", at_least=1
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        15_000, "Maximum heartbeat interval in ms that can be configured.", at_least=1
    )
    group_consumer_max_size = integer(
        2**31 - 1, "Maximum number of members of a group of the consumer protocol.", at_least=1
    )
    group_consumer_assignors = listing(
        ("uniform", "range"),
        "Assignors that members can select. The first one applies if no member selects one.",
        each_of=("uniform", "range"),
        empty=False,
    )
    group_consumer_migration_policy = string(
        "bidirectional",
        "Protocol changes that are allowed for groups with members: upgrade is from classic to consumer, downgrade "
        "from consumer to classic. Groups without members can always change.",
        one_of=("bidirectional", "downgrade", "upgrade", "disabled"),
    )
    group_consumer_assignment_interval_ms = integer(
        1000,
        "Minimum time in ms between two target assignments of a group. Members that join in between wait for the next "
        "target assignment.",
        at_least=0,
        dynamic=True,
    )
    group_consumer_min_assignment_interval_ms = integer(
        0, "Minimum assignment interval in ms that can be configured.", at_least=0
    )
    group_consumer_max_assignment_interval_ms = integer(
        15_000, "Maximum assignment interval in ms that can be configured.", at_least=0
    )
    group_consumer_regex_refresh_interval_ms = integer(
        600_000, "Time in ms after which the topic patterns of a group are resolved again.", at_least=10_000
    )
