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
_SHARE = "there are no share consumers yet"


class FetcherSettings(ConnectionSettings):
    """A fetcher's settings; Kafka 4's defaults for consumers."""

    client = "a fetcher"
    objects: ClassVar[frozenset[str]] = frozenset({"key.deserializer", "value.deserializer"})
    unused: ClassVar[frozenset[str]] = frozenset({"default.api.timeout.ms"})

    fetch_min_bytes = integer(1, "A broker waits until it has so many bytes to give.", at_least=0)
    fetch_max_bytes = integer(52_428_800, "The most bytes of one response, but for its first batch.", at_least=0)
    max_partition_fetch_bytes = integer(
        1_048_576, "The most bytes of one partition in a response, but for the response's first batch.", at_least=0
    )
    fetch_max_wait_ms = integer(500, "The longest that a broker waits for `fetch.min.bytes`.", at_least=0)
    check_crcs = boolean(True, "Whether the checksums of received batches are verified.")
    client_rack = string(
        "", "Where this client runs: the brokers may have the consumer read from replicas there, and assignors use it."
    )
    isolation_level = string(
        "read_uncommitted",
        "Whether records of transactions that are open or aborted are read.",
        one_of=("read_uncommitted", "read_committed"),
    )
    auto_offset_reset = offset_reset()
    allow_auto_create_topics = boolean(True, "Whether a broker may create a topic that is subscribed to or assigned.")
    max_poll_records = integer(500, "The most records that one `poll` returns.", at_least=1)
    queued_responses = integer(
        4,
        "Received responses that wait for the program while the next is asked for.",
        at_least=1,
        ours="lower it to hold less memory",
    )
    max_decompressed_bytes = integer(
        268_435_456,
        "The largest that a compressed batch may become.",
        at_least=1,
        ours="lower it where a topic's writers are not trusted",
    )

    key_deserializer = string("", "Bytes are handed out as they are.")
    value_deserializer = string("", "Bytes are handed out as they are.")
    interceptor_classes = no_classes("Java classes that see records.", "there is no JVM here")

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
        "The group. Without one, partitions can be assigned, but no group joined and no offset committed."
    )
    group_instance_id = optional_string("Set by a static member: its share of the group outlives a restart (KIP-345).")
    group_protocol = string(
        "classic",
        "How the group shares its partitions out: `classic` by its first member, `consumer` by the broker (KIP-848).",
        one_of=("classic", "consumer"),
        any_case=True,
    )
    group_remote_assignor = optional_string("With `consumer`: the broker's assignor to wish for, `uniform` or `range`.")
    partition_assignment_strategy = string(
        "range,cooperative-sticky", "With `classic`: the assignors that this member knows, the best first."
    )
    session_timeout_ms = integer(45_000, "A member that sends no heartbeat for so long has left.", at_least=1)
    heartbeat_interval_ms = integer(3_000, "The time between signs of life; less than the session.", at_least=1)
    max_poll_interval_ms = integer(300_000, "A member that does not poll for so long leaves.", at_least=1)
    enable_auto_commit = optional_boolean(
        "Whether offsets are committed without being asked. Unset: on with a `group.id`, off without."
    )
    auto_commit_interval_ms = integer(5_000, "The time between such commits.", at_least=0)
    exclude_internal_topics = boolean(True, "Whether a pattern leaves Kafka's own topics out.")
    share_acknowledgement_mode = fixed(
        "implicit", "How share consumers acknowledge.", only=("implicit",), because=_SHARE
    )
    share_acquire_mode = fixed(
        "batch_optimized", "How share consumers acquire.", only=("batch_optimized",), because=_SHARE
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
