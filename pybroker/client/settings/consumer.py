"""The settings of fetchers and of consumers, and Kafka's rules between them (ConsumerConfig)."""

from __future__ import annotations

from typing import ClassVar

from pybroker.client.errors import SettingError
from pybroker.client.settings.connection import ConnectionSettings
from pybroker.client.settings.keys import fixed, no_classes
from pybroker.client.settings.offset_reset import offset_reset, reset_duration_ms
from pybroker.config.key import boolean, integer, optional_boolean, optional_string, string

_BROKER_DECIDES = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")
"""Keys that are invalid with the protocol of KIP-848."""
_SHARE = "share consumers are not supported yet"


class FetcherSettings(ConnectionSettings):
    """A fetcher's settings; Kafka 4's defaults for consumers."""

    client = "a fetcher"
    objects: ClassVar[frozenset[str]] = frozenset({"key.deserializer", "value.deserializer"})
    unused: ClassVar[frozenset[str]] = frozenset({"default.api.timeout.ms"})

    fetch_min_bytes = integer(1, "The minimum bytes that a broker collects before it responds to a fetch.", at_least=0)
    fetch_max_bytes = integer(
        52_428_800, "The maximum bytes of a fetch response. Its first batch may be larger.", at_least=0
    )
    max_partition_fetch_bytes = integer(
        1_048_576,
        "The maximum bytes of one partition in a fetch response. The first batch of the response may be larger.",
        at_least=0,
    )
    fetch_max_wait_ms = integer(500, "The maximum time that a broker waits for `fetch.min.bytes`.", at_least=0)
    check_crcs = boolean(True, "Whether the checksums of received batches are verified.")
    client_rack = string(
        "",
        "The rack of this client. Brokers may direct the consumer to replicas in this rack, and assignors use it.",
    )
    isolation_level = string(
        "read_uncommitted",
        "Whether records of open and aborted transactions are returned: `read_committed` omits them.",
        one_of=("read_uncommitted", "read_committed"),
    )
    auto_offset_reset = offset_reset()
    allow_auto_create_topics = boolean(
        True, "Whether a broker may create a missing topic that is subscribed or assigned."
    )
    max_poll_records = integer(500, "The maximum number of records that one `poll` returns.", at_least=1)
    queued_responses = integer(
        4,
        "The number of responses queued for the program at which the client stops sending fetches.",
        at_least=1,
        ours="lower it to use less memory",
    )
    max_decompressed_bytes = integer(
        268_435_456,
        "The maximum bytes of a batch after decompression.",
        at_least=1,
        ours="lower it if the producers of a topic are not trusted",
    )

    key_deserializer = string("", "Bytes are returned unchanged.")
    value_deserializer = string("", "Bytes are returned unchanged.")
    interceptor_classes = no_classes("Java classes that intercept records.", "pybroker does not run on a JVM")

    @property
    def stops_at_new_leader(self) -> bool:
        """Whether the fetcher stops at a new leader until its position is validated (KIP-320)."""
        return False

    @property
    def auto_offset_reset_ms(self) -> int | None:
        """Return the duration of `by_duration` in ms; None for other values."""
        return reset_duration_ms(self.auto_offset_reset)


class ConsumerSettings(FetcherSettings):
    """A consumer's settings; Kafka 4's defaults."""

    client = "a consumer"
    objects: ClassVar[frozenset[str]] = FetcherSettings.objects | {"partition.assignment.strategy"}
    unused: ClassVar[frozenset[str]] = frozenset()

    group_id = optional_string(
        "The consumer group. Without it, the consumer can assign partitions, but not subscribe or commit offsets."
    )
    group_instance_id = optional_string(
        "The id of a static member, which keeps its assignment over a restart (KIP-345)."
    )
    group_protocol = string(
        "classic",
        "The rebalance protocol. With `classic` the group's leader assigns partitions, with `consumer` the broker does "
        "(KIP-848).",
        one_of=("classic", "consumer"),
        any_case=True,
    )
    group_remote_assignor = optional_string(
        "With `consumer`: the preferred assignor of the broker, `uniform` or `range`."
    )
    partition_assignment_strategy = string(
        "range,cooperative-sticky", "With `classic`: the assignors that this member supports, in order of preference."
    )
    session_timeout_ms = integer(
        45_000, "The time without a heartbeat after which the broker removes a member from its group.", at_least=1
    )
    heartbeat_interval_ms = integer(3_000, "The time between heartbeats; less than `session.timeout.ms`.", at_least=1)
    max_poll_interval_ms = integer(
        300_000, "The maximum time between polls. A member that exceeds it leaves its group.", at_least=1
    )
    enable_auto_commit = optional_boolean("Whether offsets are committed automatically. Unset: only with a `group.id`.")
    auto_commit_interval_ms = integer(5_000, "The time between automatic commits.", at_least=0)
    exclude_internal_topics = boolean(True, "Whether a subscription pattern excludes Kafka's internal topics.")
    share_acknowledgement_mode = fixed(
        "implicit", "How share consumers acknowledge records.", only=("implicit",), because=_SHARE
    )
    share_acquire_mode = fixed(
        "batch_optimized", "How share consumers acquire records.", only=("batch_optimized",), because=_SHARE
    )

    @property
    def stops_at_new_leader(self) -> bool:
        """True: a consumer validates its positions."""
        return True

    @property
    def commits_itself(self) -> bool:
        """Whether the consumer commits offsets automatically."""
        return self.group_id is not None if self.enable_auto_commit is None else self.enable_auto_commit

    def _complete(self) -> None:
        if self.group_protocol == "consumer":
            for key in _BROKER_DECIDES:
                if key in self.named:
                    raise SettingError(f"{key} cannot be set when group.protocol=consumer: the broker sets it")
        elif self.group_remote_assignor is not None:
            raise SettingError("group.remote.assignor cannot be set when group.protocol=classic")
        if self.group_id is None and "group.id" in self.given:
            raise SettingError("group.id=: must be a non-empty string")
        if self.group_id is None and (self.enable_auto_commit or self.group_instance_id is not None):
            raise SettingError("enable.auto.commit and group.instance.id need a group.id")
        if self.group_id is not None and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise SettingError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms}: must be less than session.timeout.ms, which is "
                f"{self.session_timeout_ms}"
            )
