"""The settings of producers, and Kafka's rules between them.

The rules are those of ProducerConfig and of KafkaProducer.configureDeliveryTimeout.
"""

from __future__ import annotations

from typing import ClassVar

from pybroker.client.errors import SettingError
from pybroker.client.settings.connection import ConnectionSettings
from pybroker.client.settings.keys import fixed, no_classes
from pybroker.config.key import (
    INT_MAX,
    LONG_MAX,
    boolean,
    double,
    integer,
    long,
    optional_boolean,
    optional_integer,
    optional_string,
    string,
)

_ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
_ROUND_ROBIN = ("RoundRobinPartitioner", "org.apache.kafka.clients.producer.RoundRobinPartitioner")
_LIBRDKAFKAS = (
    "random",
    "consistent",
    "consistent_random",
    "murmur2",
    "murmur2_random",
    "fnv1a",
    "fnv1a_random",
)
_MOST_IN_FLIGHT = 5
"""The in-flight requests of a connection for which a broker can verify sequence numbers (KIP-679)."""


class ProducerSettings(ConnectionSettings):
    """A producer's settings; Kafka 4's defaults."""

    client = "a producer"
    objects: ClassVar[frozenset[str]] = frozenset({"key.serializer", "value.serializer"})
    unused: ClassVar[frozenset[str]] = frozenset({"default.api.timeout.ms"})

    acks = string(
        "all",
        "The replicas that must have a record before it is acknowledged: `0` none, `1` the leader, `all` (or `-1`) all "
        "in-sync replicas.",
        one_of=tuple(_ACKS),
    )
    batch_size = integer(16_384, "The size in bytes at which a batch of one partition is sent.", at_least=0)
    linger_ms = double(5.0, "The maximum time that a batch waits for more records.", at_most=LONG_MAX)
    buffer_memory = long(33_554_432, "The maximum bytes of records that wait for acknowledgement.", at_least=0)
    max_block_ms = long(60_000, "The maximum time that `send` waits for metadata and memory.", at_least=0)
    delivery_timeout_ms = integer(
        120_000,
        "The time after `send` at which an unacknowledged record fails; at least `linger.ms` plus "
        "`request.timeout.ms`. If it is not set, it is raised to that minimum.",
        at_least=0,
    )
    max_request_size = integer(1_048_576, "The maximum bytes of a request, and thus of a record.", at_least=0)
    max_in_flight_requests_per_connection = integer(
        5,
        "The maximum number of requests without a response. More than 5 requires `enable.idempotence=false`.",
        at_least=1,
    )
    enable_idempotence = optional_boolean(
        "Whether the broker rejects duplicate and out-of-order batches. Unset: on with `acks=all` and `retries` > 0."
    )
    compression_type = string(
        "none", "The codec that compresses batches.", one_of=("none", "gzip", "snappy", "lz4", "zstd")
    )
    compression_gzip_level = optional_integer(
        "The level of gzip. Unset: the codec's default.", at_least=-1, at_most=9, but_not=0
    )
    compression_lz4_level = optional_integer("The level of lz4. Unset: the fast compressor.", at_least=1, at_most=17)
    compression_zstd_level = optional_integer(
        "The level of zstd. Unset: the codec's default.", at_least=-131_072, at_most=22
    )
    compression_level = optional_integer(
        "The level of the codec in `compression.type`, unless the codec's own key is set.",
        ours="librdkafka's key",
    )
    receive_buffer_bytes = integer(
        32_768, "The SO_RCVBUF size of connections; -1 is the system's default.", at_least=-1
    )

    unobserved_failures = string(
        "raise",
        "The action of `flush` and `close` for failed records if the program has not received the failure from a "
        "`Delivery`, a future or a callback: `raise` or `log` the first failure with count and partitions.",
        one_of=("raise", "log"),
        ours="set `log` for a program that must not end because of a lost record",
    )

    exit_flush_timeout_ms = long(
        10_000,
        "The maximum time that process exit waits for the records of producers that were not closed. Records not "
        "acknowledged by then are lost, which one log message reports.",
        at_least=0,
        ours="raise it for a program that sends many records and exits without `close`",
    )

    key_serializer = string("", "Bytes are sent unchanged.")
    value_serializer = string("", "Bytes are sent unchanged.")
    retries = integer(INT_MAX, "The maximum number of retries of a batch, within `delivery.timeout.ms`.", at_least=0)
    partitioner_class = string(
        "",
        "The partitioner of records without a partition. Empty: the key's hash, or the sticky partition (KIP-480) for "
        "a record without a key. To use a function, pass it to the producer as `partitioner`.",
        one_of=("", *_ROUND_ROBIN),
    )
    partitioner_ignore_keys = boolean(False, "Whether records with a key are partitioned like records without a key.")
    partitioner = string(
        "",
        "Same as `partitioner.class`. Also accepts librdkafka's partitioners.",
        one_of=("", *_ROUND_ROBIN, *_LIBRDKAFKAS),
        ours="librdkafka's key",
    )
    partitioner_adaptive_partitioning_enable = fixed(
        "true",
        "Whether slower brokers get fewer records. No effect: records without a key go to all partitions equally.",
        only=("true", "false"),
        because="expected a boolean",
    )
    partitioner_availability_timeout_ms = fixed(
        "0",
        "The time that a broker may be slow before its partitions get no records without a key.",
        only=("0",),
        because="partitions of slow brokers are not skipped",
    )
    interceptor_classes = no_classes("Java classes that intercept records.", "pybroker does not run on a JVM")
    metadata_max_idle_ms = long(300_000, "Metadata of idle topics is never discarded.", at_least=5_000, acts=False)
    transactional_id = optional_string(
        "The id that identifies a producer over restarts. Its records are sent in transactions, and an earlier "
        "producer with this id is fenced. Unset: no transactions."
    )
    transaction_timeout_ms = integer(
        60_000,
        "The time after which the coordinator aborts an open transaction; at most the broker's "
        "`transaction.max.timeout.ms`.",
        at_least=1,
    )
    transaction_two_phase_commit_enable = fixed(
        "false",
        "Whether an external coordinator completes transactions (KIP-939).",
        only=("false",),
        because="this client completes its transactions itself",
    )

    @property
    def allow_auto_create_topics(self) -> bool:
        """Whether a broker may create a missing topic of a record: always, as with Kafka's producer."""
        return True

    def acks_number(self) -> int:
        """Return `acks` as Produce encodes it: 0, 1 or -1."""
        return _ACKS[self.acks]

    def is_idempotent(self) -> bool:
        """Whether batches contain a producer id."""
        if self.enable_idempotence is not None:
            return self.enable_idempotence
        if self.transactional_id is not None:
            return True
        return self.acks_number() == -1 and self.retries > 0

    def _complete(self) -> None:
        self._check_idempotence()
        self._check_transactions()
        self._complete_delivery_timeout()
        if self.partitioner and self.partitioner_class not in ("", self.partitioner):
            raise SettingError(
                f"partitioner={self.partitioner} and partitioner.class={self.partitioner_class}: set only one of them"
            )
        self.__dict__["partitioner"] = self.partitioner or self.partitioner_class
        own = getattr(self, f"compression_{self.compression_type}_level", None)
        if own is not None:
            # -1 is Kafka's value for gzip's default level.
            self.__dict__["compression_level"] = None if self.compression_type == "gzip" and own == -1 else own

    def _check_idempotence(self) -> None:
        if self.enable_idempotence and self.retries == 0:
            raise SettingError("retries=0: must be at least 1 with enable.idempotence=true")
        if self.enable_idempotence and self.acks_number() != -1:
            raise SettingError(f"acks={self.acks}: must be all with enable.idempotence=true")
        many = self.max_in_flight_requests_per_connection
        if many > _MOST_IN_FLIGHT and self.enable_idempotence is not False:
            raise SettingError(
                f"max.in.flight.requests.per.connection={many}: must be at most {_MOST_IN_FLIGHT}, unless "
                f"enable.idempotence=false"
            )

    def _check_transactions(self) -> None:
        if self.transactional_id is None:
            if "transactional.id" in self.given:
                raise SettingError("transactional.id is empty: set a name, or remove the setting")
            return
        if self.enable_idempotence is False:
            raise SettingError(
                f"transactional.id={self.transactional_id}: needs enable.idempotence=true, which is the default"
            )
        if self.acks_number() != -1:
            raise SettingError(f"acks={self.acks}: must be all with transactional.id={self.transactional_id}")
        if self.retries == 0:
            raise SettingError(f"retries=0: must be at least 1 with transactional.id={self.transactional_id}")

    def _complete_delivery_timeout(self) -> None:
        least = self.linger_ms + self.request_timeout_ms
        if self.delivery_timeout_ms >= least:
            return
        if "delivery.timeout.ms" in self.given:
            raise SettingError(
                f"delivery.timeout.ms={self.delivery_timeout_ms}: must be at least linger.ms + request.timeout.ms, "
                f"which is {least:g}"
            )
        self.__dict__["delivery_timeout_ms"] = round(least)
