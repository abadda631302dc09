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
        "Who has a record that counts as acknowledged: `all` (or `-1`) in-sync replicas, `1` the leader, `0` nobody.",
        one_of=tuple(_ACKS),
    )
    batch_size = integer(16_384, "A batch of one partition that has so many bytes is sent.", at_least=0)
    linger_ms = double(5.0, "The longest that a batch waits for more records.", at_most=LONG_MAX)
    buffer_memory = long(33_554_432, "Bytes of records that wait for their acknowledgement.", at_least=0)
    max_block_ms = long(60_000, "The longest that `send` waits for metadata and for memory.", at_least=0)
    delivery_timeout_ms = integer(
        120_000,
        "A record that is not acknowledged so long after `send` is given up; at least `linger.ms` and "
        "`request.timeout.ms` together, and as long where it is not given.",
        at_least=0,
    )
    max_request_size = integer(1_048_576, "The largest request, and so the largest record.", at_least=0)
    max_in_flight_requests_per_connection = integer(
        5, "Requests that a broker may not have answered; more than 5 only with `enable.idempotence=false`.", at_least=1
    )
    enable_idempotence = optional_boolean(
        "Whether the broker keeps out what arrives twice, or in another order. Unset: on with `acks=all` and `retries`."
    )
    compression_type = string("none", "How batches are compressed.", one_of=("none", "gzip", "snappy", "lz4", "zstd"))
    compression_gzip_level = optional_integer(
        "The level of gzip. Unset: the codec's own.", at_least=-1, at_most=9, but_not=0
    )
    compression_lz4_level = optional_integer("The level of lz4. Unset: the fast one.", at_least=1, at_most=17)
    compression_zstd_level = optional_integer(
        "The level of zstd. Unset: the codec's own.", at_least=-131_072, at_most=22
    )
    compression_level = optional_integer(
        "The level of whichever codec `compression.type` names, where its own key does not say it.",
        ours="librdkafka's key",
    )
    receive_buffer_bytes = integer(32_768, "SO_RCVBUF of connections; -1 leaves the system's.", at_least=-1)

    unobserved_failures = string(
        "raise",
        "What `flush` and `close` do about records that were not delivered and whose failure the program has not taken "
        "from a `Delivery`, a future or a callback: `raise` the first with count and partitions, or `log` that.",
        one_of=("raise", "log"),
        ours="log for a program that must not end by a lost record",
    )

    exit_flush_timeout_ms = long(
        10_000,
        "The longest that the end of the process waits for the records of a producer that was not closed; what is not "
        "acknowledged then is lost, with one line in the log.",
        at_least=0,
        ours="raise it for a program that ends without `close` and sends much at its end",
    )

    key_serializer = string("", "Bytes are sent as they are.")
    value_serializer = string("", "Bytes are sent as they are.")
    retries = integer(
        INT_MAX, "How often a batch is sent again, as long as `delivery.timeout.ms` is not over.", at_least=0
    )
    partitioner_class = string(
        "",
        "Where records go that name no partition. Empty: by the key's hash; without a key to the partition that is "
        "being filled. A function is given to the producer instead, as `partitioner`.",
        one_of=("", *_ROUND_ROBIN),
    )
    partitioner_ignore_keys = boolean(False, "Whether records with a key go where others go.")
    partitioner = string(
        "",
        "As `partitioner.class`, or one of librdkafka's partitioners.",
        one_of=("", *_ROUND_ROBIN, *_LIBRDKAFKAS),
        ours="librdkafka's key",
    )
    partitioner_adaptive_partitioning_enable = fixed(
        "true",
        "Whether slower brokers get less. Records without a key go to all partitions alike.",
        only=("true", "false"),
        because="it is a switch",
    )
    partitioner_availability_timeout_ms = fixed(
        "0",
        "How long a broker may be slow before its partitions get no records without a key.",
        only=("0",),
        because="no partition is left out for its broker's slowness",
    )
    interceptor_classes = no_classes("Java classes that see records.", "there is no JVM here")
    metadata_max_idle_ms = long(300_000, "Topics are never forgotten.", at_least=5_000, acts=False)
    transactional_id = optional_string(
        "The name by which a producer is the same one after a restart: its records are sent in transactions, and an "
        "earlier producer of this name is fenced. Unset: no transactions."
    )
    transaction_timeout_ms = integer(
        60_000,
        "A transaction that is open for longer is aborted by its coordinator; at most what the broker's "
        "`transaction.max.timeout.ms` allows.",
        at_least=1,
    )
    transaction_two_phase_commit_enable = fixed(
        "false",
        "Whether a coordinator outside of Kafka ends transactions (KIP-939).",
        only=("false",),
        because="this client ends its transactions itself",
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
