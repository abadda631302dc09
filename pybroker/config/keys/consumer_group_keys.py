"""Keys of groups of the consumer protocol (KIP-848), in which the broker computes assignments."""

from __future__ import annotations

from pybroker.config.key import integer, listing, string
from pybroker.config.settings import Settings


class ConsumerGroupKeys(Settings):
    """The consumer protocol in the group coordinator."""

    group_consumer_session_timeout_ms = integer(
        45_000, "A member whose heartbeats fail to come for this many ms is taken out of its group.", at_least=1
    )
    group_consumer_min_session_timeout_ms = integer(
        45_000, "Shortest session timeout in ms that may be configured.", at_least=1
    )
    group_consumer_max_session_timeout_ms = integer(
        60_000, "Longest session timeout in ms that may be configured.", at_least=1
    )
    group_consumer_heartbeat_interval_ms = integer(
        5000, "Time in ms between heartbeats that members are asked to keep.", at_least=1
    )
    group_consumer_min_heartbeat_interval_ms = integer(
        5000, "Shortest heartbeat interval in ms that may be configured.", at_least=1
    )
    group_consumer_max_heartbeat_interval_ms = integer(
        15_000, "Longest heartbeat interval in ms that may be configured.", at_least=1
    )
    group_consumer_max_size = integer(2**31 - 1, "Most members of a group of the consumer protocol.", at_least=1)
    group_consumer_assignors = listing(
        ("uniform", "range"),
        "The assignors that members may wish for; the first is used where none does.",
        each_of=("uniform", "range"),
        empty=False,
    )
    group_consumer_migration_policy = string(
        "bidirectional",
        "Which groups with members may change between the protocols: upgrade is from classic to consumer, downgrade "
        "back. Groups without members always may.",
        one_of=("bidirectional", "downgrade", "upgrade", "disabled"),
    )
    group_consumer_assignment_interval_ms = integer(
        1000,
        "Shortest time in ms from one target assignment of a group to the next: who comes meanwhile waits for it.",
        at_least=0,
        dynamic=True,
    )
    group_consumer_min_assignment_interval_ms = integer(
        0, "Shortest assignment interval in ms that may be configured.", at_least=0
    )
    group_consumer_max_assignment_interval_ms = integer(
        15_000, "Longest assignment interval in ms that may be configured.", at_least=0
    )
    group_consumer_regex_refresh_interval_ms = integer(
        600_000, "Time in ms after which a group's patterns are looked up again.", at_least=10_000
    )
