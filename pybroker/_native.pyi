"""The types of the Rust extension: every class and function that `native/py` registers.

Sections follow the files of `native/py/src`, in alphabetical order. An extension that was built without the cargo
feature `load` lacks `micro.rs`, `stamp.rs` and everything that measures or generates records
(docs/adr/0034-load-generation-is-a-crate-and-a-feature.md).
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, Self, final

from typing_extensions import Buffer, TypeVar, disjoint_base

from pybroker.client.producing.record_metadata import RecordMetadata

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Key_co = TypeVar("_Key_co", covariant=True, default=bytes)
_Value_co = TypeVar("_Value_co", covariant=True, default=bytes)
_Headers = Sequence[tuple[str, bytes | bytearray | None]] | Mapping[str, bytes | bytearray | None]

# ------------------------------------------------------------------------------------------------ checksum.rs

def decompress(codec: int, data: bytes, max_bytes: int) -> bytes | None:
    """Decompress data that a client compressed with one of Kafka's codecs, in the framing of record batches.

    `codec` is 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd). Returns None if the result has more than
    `max_bytes`. Raises ValueError for another codec, and for bytes that cannot be decompressed. Releases the GIL.
    """

def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data` (RFC 3720)."""

# ------------------------------------------------------------------------------------------------- cleaner.rs

@final
class CleanedLog:
    """The result of one pass of compaction over a log."""

    @property
    def end_offset(self) -> int:
        """The first dirty offset after the pass."""
    @property
    def keys(self) -> int:
        """Number of keys in the dirty part."""
    @property
    def map_full(self) -> bool:
        """Whether the key map was full before the end of the cleanable part. Another pass is then due."""
    @property
    def bytes_indexed(self) -> int:
        """Bytes of the dirty part."""
    @property
    def bytes_read(self) -> int:
        """Bytes of the rewritten segments before the pass."""
    @property
    def bytes_written(self) -> int:
        """Bytes of the rewritten segments after the pass."""
    @property
    def records_read(self) -> int:
        """Records of the rewritten segments before the pass."""
    @property
    def records_written(self) -> int:
        """Records of the rewritten segments after the pass."""
    @property
    def records_without_key(self) -> int:
        """Records that were removed because they have no key."""
    @property
    def segments_read(self) -> int:
        """Number of rewritten segments before the pass."""
    @property
    def segments_written(self) -> int:
        """Number of rewritten segments after the pass."""
    @property
    def index_ms(self) -> int:
        """Time to build the key map, in ms."""
    @property
    def total_ms(self) -> int:
        """Time of the whole pass, in ms."""
    @property
    def files(self) -> list[str]:
        """Current paths of the files of the replaced segments. The caller has to remove the files."""

@final
class LogCleaner:
    """Compaction of logs. All passes of one cleaner share one I/O rate."""

    def __new__(cls, *, max_bytes_per_second: float) -> LogCleaner:
        """Create a cleaner. Bytes read and bytes written both count towards the rate."""
    def clean(
        self,
        partition: Partition,
        *,
        first_dirty: int,
        first_uncleanable: int,
        map_bytes: int,
        load_factor: float,
        buffer_bytes: int,
        now_ms: int,
    ) -> CleanedLog:
        """Compact one log below `first_uncleanable`, which is the base offset of a segment. Releases the GIL.

        Raises `CleaningEndedError` if the pass was stopped: by `stop`, or because the log was truncated, closed or
        deleted. Raises `OSError` with its errno, and `ValueError` for a log with damaged batches.
        """
    def set_pace(self, max_bytes_per_second: float) -> None:
        """Change the I/O rate, also of passes in progress."""
    def stop(self) -> None:
        """Stop the passes in progress and all later ones."""

def earliest_dirty_timestamp(partition: Partition, offset: int) -> int | None:
    """Return the earliest first timestamp (ms) of the segments from the one with `offset` on, or None.

    The active segment is left out. The first timestamp of a segment is the one in its first batch.
    """

def roll_when_older(partition: Partition, age_ms: int, now_ms: int) -> bool:
    """Roll the log if the first record of the active segment is older than `age_ms`. Return whether the log was rolled.

    Raises `OSError`.
    """

def survey_segments(partition: Partition) -> list[tuple[int, int, int]]:
    """Return (base offset, bytes, largest timestamp in ms or -1) of each segment. The active segment is the last."""

# --------------------------------------------------------------------------------------------------- codec.rs

_Versions = tuple[int, int]
"""(lowest version, highest version). The range is empty if the lowest is above the highest."""

_FieldRow = tuple[str, str | int, bool, _Versions, _Versions, int, _Versions, object, bool, bool]
"""(name, primitive type or index of an earlier struct, whether the field is an array, versions, nullable versions, tag,
tagged versions, default, whether the field is ignorable, whether flexible versions use compact lengths).
"""

@final
class Schema:
    """A compiled message class, which encodes and decodes its instances in every version that the class declares."""

    def __new__(
        cls,
        name: str,
        structs: list[tuple[type, list[_FieldRow]]],
        versions: _Versions,
        flexible: _Versions,
    ) -> Schema:
        """Compile a table of `msgspec` classes and their fields.

        Each class comes after the classes of its fields. The last class is the message. Raises `TypeError` for an
        invalid table.
        """
    def encode(self, message: object, version: int) -> bytes:
        """Encode an instance of the message class.

        Raises `UnsupportedVersion` for a version that is not declared, and for a version that cannot carry a value.
        Raises `UnencodableValue` for a value outside the type of its field. Both errors name the field, the value and
        the version.
        """
    def encode_element(self, element: object, version: int) -> bytes:
        """Encode an instance of one of the message's structs, as an element of an array in the message.

        An array of the message accepts these bytes in place of the instance. Raises the errors of `encode`, and
        `TypeError` for another class.
        """
    def encode_within(self, message: object, version: int, limit: int) -> bytes | None:
        """Encode an instance like `encode`. Return None if the result has more than `limit` bytes."""
    def decode(
        self,
        buffer: bytes | bytearray | memoryview,
        version: int,
        offset: int = 0,
        max_elements: int = ...,
    ) -> tuple[object, int]:
        """Decode the message that begins at `offset`. Return (message, bytes read).

        Memory is allocated only for bytes that are in the buffer. Raises `MalformedMessage`, which names the field and
        the position of the first invalid byte. Raises `TooManyElements` if all arrays and tagged fields together have
        more than `max_elements` elements; the message is then not built.
        """

# ------------------------------------------------------------------------------------------------- columns.rs

@final
class ColumnReader:
    """Columnar access to the records of a fetcher; see `pybroker.client.ColumnFetcher`.

    The caller must not read from the fetcher directly.
    """

    def __new__(cls, fetcher: Fetcher) -> ColumnReader:
        """Create a reader of the fetcher's records."""
    def assign(self, partitions: list[tuple[str, int, int]]) -> None:
        """Assign partitions like `Fetcher.assign`. Records that were fetched and not yet returned are dropped."""
    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Change the position of a partition like `Fetcher.seek`."""
    def positions(self) -> list[tuple[str, int, int]]:
        """Return the positions like `Fetcher.positions`, after the rows that were returned."""
    def take(
        self, timeout_s: float, columns: list[str], *, end: int | None, max_rows: int, max_bytes: int
    ) -> RecordColumns | None:
        """Return the next records of one partition, at most `max_rows` and about `max_bytes`, below offset `end`.

        Returns None if no records arrive within `timeout_s`. Other records stay for the next call. Releases the GIL.
        Raises `ClientError`.
        """

@final
class RecordColumns:
    """Records of one partition as Arrow columns: a struct array with the PyCapsule interface."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Bytes of all keys and values, including columns that were not selected."""
    @property
    def next_offset(self) -> int:
        """The offset to read next. It may be beyond offsets that have no record for a consumer."""
    def __arrow_c_schema__(self) -> object:
        """Return a capsule `arrow_schema`."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return capsules `arrow_schema` and `arrow_array` of the columns, without a copy and without a conversion.

        The method can be called any number of times.
        """

# -------------------------------------------------------------------------------------------- json_columns.rs

@final
class ArrowArray:
    """An Arrow array with the PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return capsules `arrow_schema` and `arrow_array`, without a copy and without a conversion."""

def decode_json_columns(batch: tuple[object, object], columns: list[tuple[str, str]]) -> ArrowArray:
    """Decode one JSON object per row to a struct array. A null row stays null, a missing field is null.

    Args:
        batch: the capsules of a record batch with one binary column.
        columns: name and type of each field: int, float, str or bool.

    Releases the GIL. Raises `ValueError` with the number of a row that is not a JSON object of these types.
    """

def encode_json_columns(batch: tuple[object, object]) -> ArrowArray:
    """Encode each row of a struct array as a JSON object, to a binary array. A null row stays null.

    Columns are int64, float64, string or bool. Releases the GIL. Raises `ValueError` for a column of another type.
    """

# ------------------------------------------------------------------------------------------- control_batch.rs

def build_control_batch(records: list[tuple[int, bytes]], timestamp_ms: int) -> bytes:
    """Return one batch of control records with base offset 0. Each record is (type, value)."""

def parse_control_batch(buffer: bytes) -> list[tuple[int, bytes]]:
    """Return (type, value) of each record of the control batch at the start of a buffer. The whole batch is checked.

    Raises `MetadataLogError` if the batch is incomplete or corrupt, or contains no control records.
    """

# ------------------------------------------------------------------------------------- data_plane_settings.rs

@final
class DataPlaneSettings:
    """The limits of the data plane, named by Kafka's configuration keys. Rust has no defaults for them."""

    def __new__(
        cls,
        *,
        node_id: int,
        network_threads: int,
        thread_slice_us: int,
        socket_request_max_bytes: int,
        socket_send_buffer_bytes: int,
        socket_receive_buffer_bytes: int,
        queued_max_requests: int,
        requests_in_work_per_connection: int,
        queued_request_bytes: int,
        queued_response_bytes_per_connection: int,
        queued_response_bytes: int,
        connections_max_idle_ms: int,
        max_connections: int,
        max_connections_reason: str,
        fetch_max_bytes: int,
        fetch_session_slots: int,
        fetch_session_eviction_ms: int,
    ) -> DataPlaneSettings:
        """Create the settings.

        A buffer size of -1 and a slice of 0 keep the system's default. With a negative `connections_max_idle_ms`, idle
        connections are not closed. A negative `queued_request_bytes` means no limit. `max_connections_reason` is the
        origin of the number, for the log.
        """

def set_thread_slice(us: int) -> None:
    """Set the scheduler slice of the calling thread in microseconds: how long it runs before other runnable threads.

    0 keeps the current slice. Threads that the calling thread starts inherit the slice. Linux supports slices since
    6.12. Raises `OSError` if the system rejects the call.
    """

# ------------------------------------------------------------------------------------------- listener_tls.rs

def pem_certificates(text: bytes) -> list[bytes]:
    """Return the certificates of a PEM text, each in DER. Raises `ValueError` if the text has none."""

def pem_key(text: bytes, password: str | None) -> bytes:
    """Return the private key of a PEM text, in DER. `password` decrypts an encrypted key (PKCS #8).

    Raises `ValueError` if the text has no key that can be read.
    """

def read_pkcs12(content: bytes, password: str) -> tuple[list[bytes], bytes | None, list[bytes]]:
    """Return (certificate chain, its private key or None, trusted certificates) of a PKCS #12 file, all in DER.

    Raises `ValueError` if the file cannot be read.
    """

@final
class ServerTls:
    """The TLS state that all connections of a listener share: its settings, and the key of the session tickets."""

    def __new__(
        cls,
        *,
        chain: list[bytes],
        key: bytes,
        trusted: list[bytes],
        client_auth: str,
        protocols: list[str],
        cipher_suites: list[str] | None,
    ) -> ServerTls:
        """Create the TLS state of a listener.

        `client_auth` is `none`, `requested` or `required`. `trusted` are the CA certificates for client certificates.
        Cipher suites have their IANA names; None enables all secure ones. Raises `ValueError` for settings that cannot
        be used.
        """

# ---------------------------------------------------------------------------------------------- data_plane.rs

class _ConnectionLimits(Protocol):
    """Limits on connections. Rates are in connections per second, None for no limit. Addresses are texts."""

    @property
    def max_connections(self) -> int:
        """Limit on open connections."""
    @property
    def max_connections_reason(self) -> str:
        """The origin of `max_connections`, for the log."""
    @property
    def creation_rate(self) -> float | None:
        """Limit on the rate of new connections over all listeners."""
    @property
    def listeners(self) -> dict[str, tuple[int, float | None, bool]]:
        """(open connections, rate, whether the listener is exempt from the two limits of the broker), by listener."""
    @property
    def max_per_address(self) -> int:
        """Limit on open connections from one address."""
    @property
    def max_of_address(self) -> dict[str, int]:
        """Limits on open connections of single addresses, in place of `max_per_address`."""
    @property
    def address_rate(self) -> float | None:
        """Limit on the rate of new connections from one address."""
    @property
    def rate_of_address(self) -> dict[str, float]:
        """Limits on the rate of single addresses, in place of `address_rate`."""
    @property
    def window_ms(self) -> int:
        """Length of one sample of a rate, in ms."""
    @property
    def windows(self) -> int:
        """Number of samples of a rate."""
    @property
    def most_delayed(self) -> int:
        """Limit on sockets whose close is delayed because their address exceeds its rate.

        Further ones are closed at once.
        """

class _ListenerSettings(Protocol):
    """The settings of one listener."""

    @property
    def name(self) -> str:
        """The listener's name."""
    @property
    def host(self) -> str:
        """The address to bind."""
    @property
    def port(self) -> int:
        """The port to bind; 0 lets the system choose."""
    @property
    def backlog(self) -> int:
        """`socket.listen.backlog.size`."""
    @property
    def congestion_control(self) -> str | None:
        """The TCP congestion control of accepted connections. None keeps the system's default."""
    @property
    def control_only(self) -> bool:
        """Whether every request of this listener is a `ControlRequest`, including Produce, Fetch and ApiVersions."""
    @property
    def principal(self) -> tuple[str, str] | None:
        """The principal of all connections, as (type, name). None: each client has to authenticate by SASL first."""
    @property
    def unauthenticated_max_bytes(self) -> int:
        """`sasl.server.max.receive.size`: the largest frame of an unauthenticated connection."""
    @property
    def authentication_timeout_ms(self) -> int:
        """How long a connection may take to authenticate after it is accepted, in ms."""
    @property
    def tls(self) -> tuple[ServerTls, int] | None:
        """The TLS state, and the limit on the duration of a handshake in ms. None: connections are not encrypted."""

@final
class DataPlane:
    """Sockets, the hot path of Produce and Fetch, and delayed operations. The threads start with the object."""

    def __new__(cls, settings: DataPlaneSettings) -> DataPlane:
        """Start `network_threads` processors and the acceptor.

        Raises `OSError` if threads or file descriptors run out.
        """
    @property
    def event_fd(self) -> int:
        """A file descriptor that is readable while events are queued."""
    @property
    def connections(self) -> int:
        """Number of open connections."""
    @property
    def flush_counts(self) -> tuple[int, int]:
        """(syncs, appends that requested a sync) under `flush=group`, since the start."""
    def counters(self) -> DataPlaneCounters:
        """Return the counters since the start.

        They are sums over threads that continue to count, so they are not one snapshot.
        """
    def drain(
        self, limit: int
    ) -> list[
        AppendCompleted
        | ControlRequest
        | InterceptedRequest
        | UnresolvedRequest
        | ConnectionClosed
        | Exhausted
        | LogDirectoryFailed
        | LogLine
        | PeerCertificate
        | QuotaQuery
        | ReplicaCaughtUp
        | ReplicaDeletedRecords
        | SegmentRolled
    ]:
        """Remove and return up to `limit` events, oldest first."""
    def listen(self, listener: _ListenerSettings) -> int:
        """Bind a listener and return its port. Raises `OSError` with its errno."""
    def authenticate(self, connection: int, principal: tuple[str, str], lifetime_ms: int | None) -> None:
        """Set the principal of a connection from its next request on.

        The principal is valid for `lifetime_ms`, or without a limit if that is None. The response to the authentication
        request must be sent after this call.
        """
    def name_peer(self, connection: int, principal: tuple[str, str]) -> None:
        """Set the principal of a connection after its `PeerCertificate` event, and resume the connection."""
    def set_listener_tls(self, listener: str, tls: ServerTls, handshake_timeout_ms: int) -> bool:
        """Set the TLS state for new connections of an encrypted listener.

        Return False if no encrypted listener has this name.
        """
    def set_connection_limits(self, limits: _ConnectionLimits) -> None:
        """Change the limits on the number and the rate of connections. Open connections stay open."""
    def respond(self, connection: int, request: int, payload: bytes, *, last: bool = False) -> None:
        """Send the response to a control request. `payload` is everything after the correlation id.

        The calling thread writes a small response itself if the connection has nothing else to do. A response with
        `last` closes the connection, and later requests of the connection are ignored.
        """
    def respond_many(self, responses: list[tuple[ControlRequest, bytes]]) -> None:
        """Send several responses like `respond`, as pairs of a request and its payload."""
    def hold(self, connection: int, request: int) -> None:
        """Free the slot of a control request in `queued.max.requests`, because its response waits for other clients."""
    def retry(
        self,
        connection: int,
        request: int,
        allowed: list[str | bytes] = ...,
        version: int = 0,
        transactional_id: bool = False,
    ) -> None:
        """Evaluate an unresolved request again, against the topic table published last. Unknown topics are then errors.

        After `set_rights`, the client may use only the topics in `allowed`, each named as in the request. 16 zero bytes
        stand for the cluster. `transactional_id` is whether the client has Write on the request's transactional id. The
        decision is cached while `version` is the current version of the rules. With `version` 0, the decision is not
        cached.
        """
    def set_rights(self, *, decisions: int, version: int) -> None:
        """Authorize every Produce and Fetch from now on, by rules of `version`, which must not be 0.

        About `decisions` decisions are cached, in 8 bytes each. A later call changes only the version.
        """
    def close_connection(self, connection: int) -> None:
        """Close a connection after its queued responses are written."""
    def intercept(self, api_keys: list[int]) -> None:
        """Intercept the requests of these APIs, and of no others.

        Each becomes an `InterceptedRequest` before it is processed.
        """
    def proceed(self, connection: int) -> None:
        """Process the intercepted request of a connection."""
    def proceed_unanswered(self, connection: int, *, close: bool) -> None:
        """Process the intercepted request like `proceed`, but send no response to this request or to later ones.

        With `close`, the connection is closed when the response would be sent.
        """
    def respond_intercepted(self, connection: int, payload: bytes) -> None:
        """Send a response to the intercepted request of a connection without processing the request.

        `payload` is everything after the correlation id.
        """
    def close_connections(self) -> None:
        """Close every connection at once. Queued responses are dropped."""
    def set_clock_ahead(self, by_ms: int) -> None:
        """Set the clock of appends and fetch sessions `by_ms` ahead of the system's clock. Calls do not add up."""
    @property
    def fetcher_threads(self) -> int:
        """Number of threads that fetch from leaders."""
    def set_replication(self, settings: ReplicationSettings) -> None:
        """Set how this broker replicates. The broker fetches from no leader before the first call.

        Open connections to other brokers keep their settings.
        """
    def set_read_replicas(self, *, own_rack: str | None, others: list[tuple[int, str]]) -> None:
        """Replace the racks by which consumers are sent to followers (KIP-392).

        `own_rack` is the rack of this broker. `others` are (broker id, rack) of the brokers that the consumers can
        reach.
        """
    def clear_read_replicas(self) -> None:
        """Serve consumers from the leader only."""
    def set_fetch_sources(self, sources: list[tuple[int, str, int, int]]) -> None:
        """Replace the brokers from which partitions are fetched. Each is (id, host, port, broker epoch)."""
    def publish(self, table: TopicTable) -> None:
        """Replace the topic table of the hot path."""
    def publish_api_versions(self, responses: dict[int, bytes]) -> None:
        """Replace the responses to ApiVersions, by version. Each response is everything after the correlation id.

        The data plane responds to ordinary requests of these versions. Other ApiVersions requests become a
        `ControlRequest`.
        """
    def resume_accepting(self) -> None:
        """Allow `listen` again after `stop_accepting`. Raises `OSError` if threads or file descriptors run out."""
    def stop_accepting(self) -> None:
        """Close the listeners. Open connections continue."""
    def shut_down(self, *, grace_ms: int) -> None:
        """Complete requests in progress for at most `grace_ms`, then close every connection and join the threads."""

# ------------------------------------------------------------------------------------------------ counters.rs

@final
class DataPlaneCounters:
    """The counters of a data plane since its start."""

    @property
    def apis(self) -> list[ApiCounters]:
        """The counters of the APIs that had requests, by API key."""
    @property
    def processors(self) -> list[ProcessorCounters]:
        """The counters of the processors, by number."""

@final
class ApiCounters:
    """The counters of one API, over all processors."""

    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def requests(self) -> int:
        """Requests begun. Requests that wait for a slot or for a decision are not counted yet."""
    @property
    def in_work(self) -> int:
        """Requests begun and neither completed nor dropped, including delayed operations."""
    @property
    def bytes_in(self) -> int:
        """Bytes of the requests, including size prefixes."""
    @property
    def bytes_out(self) -> int:
        """Bytes of the responses, including size prefixes.

        A response counts when it is built, even if the client never reads it.
        """
    @property
    def errors(self) -> dict[int, int]:
        """Count of each error code in responses to Produce and Fetch, once per partition or per response.

        Errors of other APIs are counted where their responses are encoded.
        """

@final
class ProcessorCounters:
    """The counters of one processor, over all APIs."""

    @property
    def requests(self) -> int:
        """Requests begun."""
    @property
    def bytes_in(self) -> int:
        """Bytes of the requests."""
    @property
    def bytes_out(self) -> int:
        """Bytes of the responses that this processor built.

        Responses that the control plane writes itself are not included.
        """

# ------------------------------------------------------------------------------------------- work_counters.rs

_TopicCounts = tuple[int, int, int, int, int, int, int, int]
"""(bytes in, bytes out, bytes rejected, records in, partitions in Produces, of these failed, partitions in Fetches, of
these failed).
"""

_ClientUse = tuple[str, str, int, int]
"""(user, client id, usage, throttle time in ms).

User or client id is empty if all of them share the quota. Usage is in bytes, or in nanoseconds of a thread.
"""

def client_uses(data_plane: DataPlane, most: int) -> ClientUses:
    """Return the usage of quotas and limits since their clients became known.

    For each quota, the result has the `most` entities with the highest usage. Any thread may call this function.
    """

@final
class ClientUses:
    """The usage of client quotas. Each property also has the number of omitted entities."""

    @property
    def produce(self) -> tuple[list[_ClientUse], int]:
        """Bytes of Produce requests, by user and client id."""
    @property
    def fetch(self) -> tuple[list[_ClientUse], int]:
        """Bytes of Fetch responses, by user and client id."""
    @property
    def request(self) -> tuple[list[_ClientUse], int]:
        """Nanoseconds of thread time, by user and client id."""
    @property
    def addresses(self) -> tuple[list[tuple[str, int]], int]:
        """Accepted connections by address, for addresses with a limit on the connection rate."""

def work_counters(data_plane: DataPlane) -> WorkCounters:
    """Return the counters of a data plane since its start, other than those of API requests.

    Any thread may call this function.
    """

def partition_states(data_plane: DataPlane) -> PartitionStates:
    """Return the current states of a broker's replicas, and the counters of topics.

    Any thread may call this function.
    """

@final
class WorkCounters:
    """The counters of a data plane other than those of API requests, over all threads."""

    @property
    def topics(self) -> _TopicCounts:
        """The counters over all topics."""
    @property
    def replication_bytes_in(self) -> int:
        """Bytes of records that were fetched from leaders and appended."""
    @property
    def replication_bytes_out(self) -> int:
        """Bytes of records in Fetch responses to followers."""
    @property
    def waiting(self) -> tuple[int, int]:
        """(Produces, Fetches) in the purgatory now."""
    @property
    def expired(self) -> tuple[int, int]:
        """(Produces, Fetches) that expired in the purgatory."""
    @property
    def times(self) -> list[RequestTimes]:
        """The request times by API."""
    @property
    def bounds_us(self) -> list[int]:
        """The bounds of the histograms in `times`, in microseconds, ascending."""
    @property
    def system_threads(self) -> list[int]:
        """The system's thread id for each processor. 0: the processor has no thread of its own at the moment."""
    @property
    def listeners(self) -> list[tuple[str, int, int, int, int]]:
        """(name, open connections, accepted connections since the start, ms, ms) of each listener that had connections.

        The first time is how long new connections were delayed by a rate limit. The second time is the sum of the
        delays of connections whose address exceeded its rate, before they were closed.
        """

@final
class RequestTimes:
    """The times of the completed requests of one API."""

    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def of_followers(self) -> bool:
        """Whether these are Fetches of followers. Fetches of consumers have another entry."""
    @property
    def requests(self) -> int:
        """Number of completed requests."""
    @property
    def phases(self) -> list[tuple[int, list[int]]]:
        """(sum in ns, counts) of the phases queue, local, remote, throttle, send and total.

        The counts are the requests below each bound of `WorkCounters.bounds_us`, then the number of all requests.
        """

@final
class PartitionStates:
    """A snapshot of the replicas of one broker, by topic and index. `len` is the number of replicas."""

    def __len__(self) -> int: ...
    def rows(self, begin: int, count: int) -> list[tuple[str, int, bool, int, int, int, int, int, int, int, int]]:
        """Return up to `count` rows from row `begin` on.

        A row is (topic, index, whether this broker is the leader, bytes, segments, log start offset, log end offset,
        high watermark, replicas, in-sync replicas, in-sync replicas that `acks=all` requires). The last three apply to
        leaders.
        """
    def topics(self, begin: int, count: int) -> list[tuple[str, _TopicCounts]]:
        """Return up to `count` topics with their counters from position `begin` on.

        Topics without counts are left out.
        """

# -------------------------------------------------------------------------------------------------- events.rs

@final
class AppendCompleted:
    """The append of a `PartitionLog.complete` call is committed and synced, or has failed."""

    @property
    def ticket(self) -> int:
        """The ticket of that call."""

@final
class ControlRequest:
    """A request that Python responds to with `DataPlane.respond`."""

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def request(self) -> int:
        """The request's number on its connection."""
    @property
    def api(self) -> int:
        """API key and version combined in one number, for one lookup."""
    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def api_version(self) -> int:
        """The API version."""
    @property
    def size(self) -> int:
        """Bytes of the message, including the tagged fields of its header."""
    @property
    def message(self) -> bytes:
        """The encoded message, after the tagged fields of a flexible header."""
    @property
    def correlation_id(self) -> int:
        """The correlation id. The data plane writes it at the start of the response."""
    @property
    def client_id(self) -> str | None:
        """The client id of the request header."""
    @property
    def principal(self) -> tuple[str, str] | None:
        """The client's principal as (type, name). None before the client has authenticated."""
    @property
    def listener(self) -> str:
        """The name of the listener."""
    @property
    def local_host(self) -> str:
        """The local address of the connection."""
    @property
    def local_port(self) -> int:
        """The local port of the connection."""
    @property
    def peer_host(self) -> str:
        """The client's address."""
    @property
    def peer_port(self) -> int:
        """The client's port."""
    @property
    def software(self) -> tuple[str, str] | None:
        """The client's software name and version (KIP-511), from its last ordinary ApiVersions request.

        None if it sent none.
        """
    def wait(self) -> None:
        """Record that the request now waits for other clients, for the measurement of its phases."""
    def decode(self, schema: Schema, flexible: bool, max_elements: int) -> object:
        """Decode the message, after the tagged fields of a flexible header. Other threads may run in between.

        Raises `MalformedMessage`. Raises `TooManyElements` if all arrays and tagged fields together have more than
        `max_elements` elements.
        """

@final
class InterceptedRequest:
    """A request of an API in `DataPlane.intercept`.

    Its connection is paused until `DataPlane.proceed`, `proceed_unanswered` or `respond_intercepted` is called, or the
    connection closes.
    """

    @property
    def request(self) -> ControlRequest:
        """The request. Its number is the count of earlier requests on the connection."""

@final
class UnresolvedRequest:
    """A Produce or Fetch that needs a decision of the control plane.

    The request names topics that are not in the topic table, needs authorization, or begins a transaction in
    partitions. Its connection is paused until `DataPlane.retry` or `transaction_verified` is called.
    """

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def request(self) -> int:
        """The request's number on its connection."""
    @property
    def api_key(self) -> int:
        """0 (Produce) or 1 (Fetch)."""
    @property
    def principal(self) -> tuple[str, str] | None:
        """The client's principal as (type, name)."""
    @property
    def client_host(self) -> str:
        """The client's address."""
    @property
    def operation(self) -> int | None:
        """The operation to authorize, numbered as Kafka's AclOperation. None if there is nothing to authorize."""
    @property
    def checked(self) -> list[str | bytes]:
        """The topics to authorize, each by name or by id (16 bytes)."""
    @property
    def transactional_id(self) -> str | None:
        """The transactional id to authorize. None if there is nothing to authorize."""
    @property
    def transaction(self) -> tuple[str, int, int, int, list[tuple[str, int]]] | None:
        """The query for the transaction coordinator, or None.

        It is (transactional id, producer id, producer epoch, Produce version, [(topic, index)]). If it is set,
        `transaction_verified` must be called and the other properties are to be ignored.
        """
    @property
    def topics(self) -> list[str]:
        """Unknown topics that the request names by name."""
    @property
    def topic_ids(self) -> list[bytes]:
        """Unknown topics that the request names by id, 16 bytes each."""

@final
class PeerCertificate:
    """A client presented a TLS certificate. Its requests wait until `DataPlane.name_peer` sets the principal."""

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def listener(self) -> str:
        """The name of the listener."""
    @property
    def peer(self) -> str:
        """The client's address and port."""
    @property
    def certificate(self) -> bytes:
        """The certificate in DER."""

@final
class ConnectionClosed:
    """A connection closed that had sent requests to Python."""

    @property
    def connection(self) -> int:
        """The connection's number."""

@final
class Exhausted:
    """File descriptors, memory or mappings are exhausted. An operation failed and may be retried.

    Not every such failure is reported.
    """

    @property
    def error(self) -> str:
        """The failed operation and the system's error."""

@final
class LogDirectoryFailed:
    """A write or sync failed. The log directory must be taken offline."""

    @property
    def directory(self) -> str:
        """The log directory."""
    @property
    def error(self) -> str:
        """The system's error, with the path."""

@final
class LogLine:
    """A line for the broker's log."""

    @property
    def level(self) -> str:
        """`info`, `warning` or `error`."""
    @property
    def text(self) -> str:
        """The text of the line."""

# ---------------------------------------------------------------------------------------------------- files.rs

@final
class FileSystem:
    """The file system of a directory, open for a sync of the whole file system.

    The sync reports writes that were lost after the file system was opened.
    """

    @staticmethod
    def open(directory: str) -> FileSystem | None:
        """Open the file system of a directory. Return None if a sync of the whole file system is not reliable there.

        Raises `OSError` with its errno.
        """

def close_logs(
    partitions: Sequence[Partition], *, file_system: FileSystem | None, shared_from: int, threads: int
) -> list[OSError | ValueError | None]:
    """Close partitions of one file system like `Partition.close`, on `threads` threads. Releases the GIL once.

    Returns the error of each partition, or None if it was closed. If at least `shared_from` partitions have unsynced
    data, the file system is synced once in place of the single files.
    """

def close_idle_files(partitions: Sequence[Partition], *, most: int) -> tuple[int, int]:
    """Close files of segments until at most `most` are open. Return (files that were open, files closed).

    Files that were not used since the last call are closed first. The next use opens them again. Releases the GIL once.
    """

# -------------------------------------------------------------------------------------------------- forking.rs

def keep_forever(kept: object) -> None:
    """Keep an object alive until the process has ended, including while the interpreter frees its remaining objects."""

# -------------------------------------------------------------------------------------------------- fetcher.rs

@final
class Fetcher:
    """Fetches assigned partitions on its own I/O thread; see `pybroker.client.Fetcher`."""

    def __new__(cls, settings: object) -> Fetcher:
        """Create a fetcher from an object with the attributes of `pybroker.client.settings.FetcherSettings`.

        No request is sent before `assign`.
        """
    def assign(self, partitions: list[tuple[str, int, int]]) -> None:
        """Replace the assigned partitions by these, each (topic, partition, offset).

        An offset of -1 begins after the last record, and -2 begins at the first record.
        """
    def add(self, partitions: list[tuple[str, int, int]]) -> None:
        """Assign more partitions, or change the position of assigned ones.

        Fetched records of other partitions are kept.
        """
    def remove(self, partitions: list[tuple[str, int]]) -> None:
        """Unassign partitions. Fetched records of other partitions are kept."""
    def pause(self, topic: str, partition: int, paused: bool) -> bool:
        """Pause or resume one partition: no records of a paused partition are returned.

        Return False if it is not assigned.
        """
    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Change the position of one partition. Return False if it is not assigned."""
    def position(self, topic: str, partition: int) -> int | None:
        """Return the caller's position in one partition, or None if it is not assigned.

        The position is negative until the start offset is known.
        """
    def epoch(self, topic: str, partition: int) -> int:
        """Return the leader epoch of the last batch before the position, or -1.

        It is -1 if no batch before the position was read, or if the epoch is unknown.
        """
    def positions(self) -> list[tuple[str, int, int]]:
        """Return the caller's positions as (topic, partition, offset).

        Before the first record, an offset may be negative as in `assign`.
        """
    def count(self, timeout_s: float, stamped: bool = False) -> tuple[int, int] | None:
        """Read all records of the next received batches.

        Return (records, bytes of keys and values), or None after `timeout_s`. With `stamped`, the latencies of the
        records are added to those of `take_arrivals`. Raises `ClientError`.
        """
    def take_arrivals(self) -> tuple[Tally, LatencyHistogram]:
        """Return the stamped records since the last call, and the times from their stamps to their arrival.

        Records that are too short for a stamp count as failed.
        """
    def take(self, timeout_s: float) -> Received | None:
        """Return the next received batches of one partition, or None if none arrive within `timeout_s`.

        Batches without records for a consumer are returned with no records. Releases the GIL. Raises `ClientError`.
        """
    def metrics(self) -> dict[str, float]:
        """Return the fetcher's metrics, including its lag, by the names of Kafka's metrics. Units are bytes and ms."""
    def lags(self) -> list[tuple[str, int, int]]:
        """Return (topic, partition, lag in records) of each assigned partition.

        The lag is the distance from the caller's position to the end offset in the partition's last response. It is 0
        before the first response.
        """
    def arrived_descriptor(self) -> int:
        """Return a file descriptor that is readable when `take` may return batches."""
    def clear_signal(self) -> None:
        """Make the descriptor unreadable. The caller does this before `take`."""
    def close(self) -> None:
        """Stop the I/O thread. Releases the GIL."""

# --------------------------------------------------------------------------------------------- line_sender.rs

@final
class LineSender:
    """Parses lines of text into records and sends the records to one topic; see `pybroker.client.text`."""

    def __new__(
        cls,
        producer: Producer,
        topic: str,
        *,
        parse_key: bool,
        parse_headers: bool,
        key_separator: bytes,
        headers_delimiter: bytes,
        headers_separator: bytes,
        headers_key_separator: bytes,
        null_marker: bytes | None,
        ignore_error: bool,
    ) -> LineSender:
        """Create a sender. Lines are parsed like in `kafka.tools.LineMessageReader`. The producer stays open."""
    def send(self, block: bytes, is_end: bool) -> int:
        """Send the lines that end in `block`.

        With `is_end`, also send the last line. Return the number of records sent. A line may begin in one block and end
        in another. The call waits for metadata and for memory, up to `max.block.ms` each, with the GIL released. Raises
        `RecordError` for a line that cannot be parsed, after the lines before it were sent; the sender cannot be used
        after that. Other failures are in `take_failures`.
        """
    def parse(
        self, block: bytes, is_end: bool
    ) -> tuple[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], str | None]:
        """Parse lines like `send`, but return the records as (key, value, headers), and the parse error or None."""
    def in_flight(self) -> int:
        """Return the number of records in batches that are not complete yet."""
    def take_failures(self) -> list[tuple[int | None, int | None, BaseException]]:
        """Return the records that failed since the last call: (bytes of the key, bytes of the value, error).

        The size of a null key or null value is None.
        """

# ------------------------------------------------------------------------------------------ load_generator.rs

@final
class LoadGenerator:
    """Sends generated records with one producer, and measures all records that the producer sends."""

    def __new__(cls, producer: Producer) -> Self:
        """Create a generator. Records that the producer has sent before are also measured."""
    def send_many(self, topic: str, partition: int, values: bytes, record_size: int) -> int:
        """Send the values of `record_size` bytes that are concatenated in `values`. Return their number.

        Otherwise like `Producer.send`.
        """
    def send_random_letters(
        self, topic: str, partition: int, record_size: int, count: int, due: tuple[int, float] | None = None
    ) -> None:
        """Send `count` values of random capital letters. Otherwise like `Producer.send`.

        `due` is the schedule, in microseconds: the time of the first record since the epoch, and the interval between
        records. The latency of a record then starts at its scheduled time, not at this call.
        """
    def send_stamped(
        self,
        topic: str,
        partition: int,
        producer: int,
        first_sequence: int,
        record_size: int,
        count: int,
        due: tuple[int, float] | None = None,
    ) -> None:
        """Send records like `send_random_letters`, each value beginning with a stamp of 24 bytes.

        The stamp is the producer (u64), the sequence (u64, starting at `first_sequence`) and the send time or scheduled
        time in microseconds since the epoch (i64), all big-endian. Sequences count by producer and partition, so the
        partition must be specified. Raises `ValueError` if it is not, or if a record is too short for its stamp.
        """
    def begin_phase(self, phase: int) -> None:
        """Assign records that are sent from now on to phase 0 or 1 of the measurement."""
    def take_window(self) -> Tally:
        """Return the sums of records acknowledged since the last call."""
    def take_interval(self, phase: int) -> tuple[Tally, LatencyHistogram]:
        """Return the sums and the latencies of a phase's records acknowledged since the last call.

        This also resets the phase's window (`take_window`).
        """
    def summary(self, first_phase: int, quantiles: list[float]) -> tuple[Tally, list[int]]:
        """Return the sums of the phases from `first_phase` on, and the latency in us at each quantile (0 to 1)."""

# ----------------------------------------------------------------------------------------------------- log.rs

@final
class Log:
    """A log in Kafka's file format, whose batches this node builds. File system failures raise `OSError`."""

    @staticmethod
    def open(
        *,
        directory: str,
        segment_bytes: int,
        segment_ms: int,
        segment_index_bytes: int,
        index_interval_bytes: int,
        now_ms: int,
    ) -> Log:
        """Open or create the log. All batches are checked, and bytes after the last complete batch are truncated."""
    @property
    def truncated_bytes(self) -> int:
        """Bytes that were truncated when the log was opened."""
    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""
    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
    @property
    def size_bytes(self) -> int:
        """Bytes of the log's segments."""
    def append(self, batches: bytes, leader_epoch: int, now_ms: int) -> tuple[int, int]:
        """Append batches at the end of the log in `leader_epoch`, without a sync.

        Return (first offset, last offset).
        """
    def append_as_follower(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Append batches that have their offsets and epochs. Raises `ValueError` if these decrease."""
    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches, starting with the batch that contains `offset`. The last batch may be cut.

        Raises `ValueError` for an offset outside the log.
        """
    def flush(self) -> int:
        """Sync the log, and return the log end offset up to which it is synced."""
    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Remove the records from `offset` on."""
    def restart_at(self, offset: int, now_ms: int) -> None:
        """Remove all records. The log then starts and ends at `offset`."""
    def advance_start(self, offset: int) -> list[Path]:
        """Advance the log start offset, at most to the log end offset. Return the files that are no longer used.

        The caller has to remove the files.
        """
    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest leader epoch in the log that is at most `epoch`, or (-1, -1)."""
    def close(self) -> None:
        """Flush the log and reject later appends."""

@final
class SegmentRolled:
    """A log began a new segment. The older segments should be flushed, so that a crash leaves little to recover."""

    @property
    def topic(self) -> str:
        """The topic's name."""
    @property
    def index(self) -> int:
        """The partition's index."""

# ---------------------------------------------------------------------------------------------- log_config.rs

@final
class LogConfig:
    """The settings of one log, named by Kafka's topic configuration keys. Rust has no defaults for them."""

    def __new__(
        cls,
        *,
        segment_bytes: int,
        segment_ms: int,
        segment_jitter_ms: int,
        segment_index_bytes: int,
        index_interval_bytes: int,
        max_message_bytes: int,
        compression_type: str,
        compression_level: int | None,
        timestamp_type: Literal["CreateTime", "LogAppendTime"],
        timestamp_before_max_ms: int,
        timestamp_after_max_ms: int,
        require_keys: bool,
        preallocate: bool,
        delete_retention_ms: int,
        flush_messages: int,
        flush_ms: int,
        flush_group: bool,
        producer_id_expiration_ms: int,
        max_decompressed_bytes: int,
        file_delete_delay_ms: int,
    ) -> LogConfig:
        """Create the settings.

        `segment_jitter_ms` is the jitter drawn for this log, not its bound. `require_keys` is set for compacted topics.
        `compression_type` is "producer", "uncompressed" or a codec. `compression_level` is the codec's level, or None
        for its default.
        """

# ---------------------------------------------------------------------------------------------- log_opening.rs

@final
class LogOpening:
    """The arguments for opening `<directory>/<topic>-<index>`."""

    def __new__(
        cls,
        *,
        directory: str,
        topic: str,
        index: int,
        topic_id: bytes,
        claimed: bool,
        config: LogConfig,
        clean_shutdown: bool,
        recovery_point: int,
        log_start_offset: int,
        high_watermark: int,
        progress: RecoveryProgress,
    ) -> LogOpening:
        """Create the arguments.

        `recovery_point` and `log_start_offset` are -1 if unknown. `progress` counts the bytes that a recovery reads.
        With `claimed`, the topic id is known from `read_topic_ids`, and the directory's file is not read again. A log
        that ends before `recovery_point` or `high_watermark` has lost records; see `RecoveryProgress.take_found`.
        """

def open_logs(openings: Sequence[LogOpening], *, now_ms: int) -> list[Partition | OSError | ValueError]:
    """Open logs one after the other, with recovery or creation. Return the partition or the error of each.

    Releases the GIL once.
    """

# ------------------------------------------------------------------------------------------------ log_walk.rs

_FileRecord = tuple[int, int, int, bytes | None, bytes | None, list[bytes]]
"""(offset, timestamp, sequence number, key, value, names of the headers)."""

_FileMessage = tuple[int, int, int, bool, bytes | None, bytes | None]
"""(offset, timestamp, checksum, whether the checksum is correct, key, value)."""

@final
class FileBatch:
    """A batch in a file, or a message of format 0 or 1, as it is stored."""

    @property
    def position(self) -> int:
        """Position of the batch in the file."""
    @property
    def size(self) -> int:
        """Size of the batch in bytes."""
    @property
    def magic(self) -> int:
        """The message format version."""
    @property
    def is_valid(self) -> bool:
        """Whether the checksum is correct."""
    def header(self) -> tuple[int, int, int, int, int, int, int, int, int, int, int, int] | None:
        """Return the header of a batch, or None before format 2.

        The header is (base offset, last offset, record count, base sequence, last sequence, producer id, producer
        epoch, leader epoch, attributes, base timestamp, largest timestamp, checksum).
        """
    def message(self) -> tuple[int, int, int, int] | None:
        """Return (offset, attributes, timestamp, checksum) of a message of format 0 or 1, or None for later formats."""
    def messages(self) -> tuple[list[_FileMessage], ValueError | None]:
        """Return the message or the messages that it wraps, and the error that ended the read or None.

        The list is empty unless the batch was read with its bytes.
        """
    def records(self) -> tuple[list[_FileRecord], ValueError | None]:
        """Return the records that can be read, and the error that ended the read or None.

        The list is empty unless the batch was read with its bytes.
        """

@final
class LogWalk:
    """An iteration over a file of batches that may be damaged. Damage ends the iteration; a wrong checksum does not."""

    @staticmethod
    def open(path: str, limit: int) -> LogWalk:
        """Open the file and begin at its start. Bytes beyond `limit` are ignored. Raises `OSError`."""
    @property
    def end(self) -> int:
        """Size of the file in bytes, at most the limit."""
    def batches(self, limit: int, *, with_bytes: bool) -> tuple[list[FileBatch], ValueError | OSError | None]:
        """Return the next batches, about `limit` bytes, and the error that ended the iteration or None.

        The list is empty at the end of the file, and if no complete batch follows. `with_bytes` keeps the bytes that
        `FileBatch.records` and `FileBatch.messages` need.
        """
    def last_offset_at(self, position: int, limit: int) -> int | None:
        """Return the last offset of the batch at `position`, or None if the batch does not fit within `limit` bytes.

        Raises `ValueError` and `OSError`.
        """
    def find(self, position: int, offset: int) -> FileBatch | None:
        """Return the first batch from `position` on with a last offset of at least `offset`, or None.

        Raises `ValueError` and `OSError`.
        """

# --------------------------------------------------------------------------------------- measured_producer.rs

@disjoint_base
class MeasuredProducer:
    """The part of the native producer that all of its users share."""

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """Return (topic, partition, records acknowledged, records failed) of each partition that has any."""
    def _identity(self) -> tuple[int, int]:
        """Return (producer id, producer epoch). The call waits for them up to `max.block.ms`, with the GIL released.

        Raises `SettingError` without idempotence, and `ClientError`.
        """
    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic. The call waits for the topic's metadata like `send`."""
    def flush(self, timeout_s: float) -> None:
        """Wait until all records sent so far are acknowledged or failed. Raises `DeliveryError` after `timeout_s`."""
    def close(self, timeout_s: float) -> None:
        """Flush the producer, then stop its I/O thread. Records that still wait fail. Raises the errors of `flush`."""
    def metrics(self) -> dict[str, float]:
        """Return the producer's metrics, by the names of Kafka's producer metrics.

        Totals (`record-send-total`: records acknowledged; `record-error-total`), averages and maxima (`batch-size-avg`,
        `request-latency-max`, ms) are since the producer was created. Rates (`byte-rate`, per second) are over the last
        `metrics.num.samples` times `metrics.sample.window.ms`. Gauges (`requests-in-flight`, `buffer-available-bytes`)
        are current values.
        """
    def incomplete_batches(self) -> int:
        """Return the number of batches of records that are neither acknowledged nor failed."""
    def _failures(self, *, take: bool) -> list[tuple[Exception, str, int, int]]:
        """Return the failures of records that were not taken yet: (first error, topic, partition, number of records).

        With `take`, the failures are then forgotten. Records of transactions are not included.
        """
    def raise_failure(self) -> None:
        """Raise the error of the first failed record, if any record has failed."""

# --------------------------------------------------------------------------------------------------- micro.rs

def build_batch(values: list[bytes], timestamp_ms: int, codec: str = "none") -> bytes:
    """Return a v2 batch of records without keys and headers, with base offset 0 and no producer id.

    Raises `ValueError` if the records exceed the size limit of a batch (2 GiB).
    """

def decode_varints(data: bytes) -> bytes:
    """Decode consecutive zigzag varints. Return the 64-bit integers in the machine's byte order.

    Raises `ValueError` for a varint that is cut or has more than 64 bits.
    """

def down_convert(batch: bytes, magic: int) -> bytes:
    """Convert a batch to messages of format v0 or v1 for an older consumer.

    Raises `ValueError` if that is not possible.
    """

def encode_varints(values: Buffer) -> bytes:
    """Encode a buffer of 64-bit integers as zigzag varints."""

def search_index(entries: bytes, relative_offset: int) -> int:
    """Return the position of the last entry of an offset index with an offset of at most `relative_offset`.

    The result is 0 if there is no such entry. An entry has 8 bytes: relative offset and position, big-endian,
    ascending.
    """

def up_convert(messages: bytes) -> bytes:
    """Convert a set of v0 or v1 messages to the v2 batch that the log stores.

    Raises `ValueError` for an invalid set.
    """

def validate_batch(batch: bytes) -> int:
    """Validate a batch from a producer, and return its number of records. Raises `ValueError` with the defect."""

def zigzag(values: Buffer) -> bytes:
    """Encode a buffer of 64-bit integers with zigzag, as unsigned 64-bit integers in the machine's byte order."""

# --------------------------------------------------------------------------------------------------- moves.rs

@final
class LogMove:
    """The state of one move of a log to another directory: it reports the progress, and can cancel the move."""

    def __new__(cls) -> LogMove: ...
    @property
    def bytes(self) -> int:
        """Bytes of records in the future replica."""
    @property
    def end_offset(self) -> int:
        """The future replica has all records below this offset."""
    def cancel(self) -> None:
        """Cancel the move, unless the replacement of the log has begun."""

@final
class LogMover:
    """Moves of logs between log directories. All moves of one mover share one I/O rate."""

    def __new__(cls, *, max_bytes_per_second: float) -> LogMover:
        """Create a mover. Copied bytes count towards the rate."""
    def move_log(
        self, partition: Partition, state: LogMove, *, future: str, deleted_id: str
    ) -> tuple[str, OSError | None]:
        """Copy a log into the directory that `prepare_move` has created, then replace the log by the copy.

        Releases the GIL. Appends, reads and flushes continue. The old directory is renamed to
        `<topic>-<index>.<deleted_id>-delete`. Returns its current name, and the error of the rename or None.

        Raises `MoveEndedError` if the move was ended: by `cancel` or `stop`, or because the log was truncated, closed,
        deleted or taken offline. Raises `OSError` with its errno and the file's name. Raises `ValueError` for a file
        whose content does not match its name. After an error the log continues in `Partition.directory`.
        """
    def set_pace(self, max_bytes_per_second: float) -> None:
        """Change the I/O rate, also of moves in progress."""
    def stop(self) -> None:
        """Stop the moves in progress and all later ones."""

def move_count(directory: str) -> int:
    """Return how many times the log in a partition's directory was moved.

    Raises `OSError`, and `ValueError` if the stored count is damaged.
    """

def prepare_move(partition: Partition, future: str) -> None:
    """Create the directory of a future replica and sync it. Raises `OSError` with its errno and the file's name."""

# ----------------------------------------------------------------------------------------- network_threads.rs

def unlisten(data_plane: DataPlane, listener: str) -> bool:
    """Close a listener. Return False if the listener does not exist.

    The connections of the listener close when their requests in progress are complete.
    """

def network_threads(data_plane: DataPlane) -> int:
    """Return the number of network threads."""

def set_network_threads(data_plane: DataPlane, count: int) -> None:
    """Change the number of network threads, to 1 to 64. Connections and their requests in progress continue.

    Raises `OSError` if threads or file descriptors run out. The number is then as high as it could be raised.
    """

# ----------------------------------------------------------------------------------------------- partition.rs

@final
class Partition:
    """A replica on this broker. `open_logs` opens it without a role, and `become_roles` makes it serve requests."""

    @property
    def topic(self) -> str:
        """The topic's name."""
    @property
    def index(self) -> int:
        """The partition's index."""
    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
    @property
    def directory(self) -> str:
        """The log directory of the log."""
    @property
    def log_start_offset(self) -> int:
        """The first readable offset."""
    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
    @property
    def high_watermark(self) -> int:
        """The high watermark: consumers read below this offset."""
    @property
    def is_missing_records(self) -> bool:
        """Whether recovery found that records are missing which may have been acknowledged."""
    @property
    def lags_its_epoch(self) -> bool:
        """Whether the high watermark is below the start of the leader's epoch (KIP-207).

        Consumers of an earlier leader may then have seen offsets above the high watermark.
        """
    @property
    def last_stable_offset(self) -> int:
        """The last stable offset: `read_committed` consumers read below this offset."""
    @property
    def recovery_point(self) -> int:
        """The recovery point: all records below this offset are on disk."""
    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
    @property
    def leader_epoch(self) -> int:
        """The current leader epoch, -1 before the first."""
    @property
    def role(self) -> str:
        """The role of this broker for the partition: `leader`, `follower` or `none`."""
    def set_throttled(self, *, leader: bool, follower: bool) -> None:
        """Set whether replication of this replica is throttled (KIP-73).

        `leader` is for the records sent to followers, and `follower` for the records fetched from the leader.
        """
    def await_deletion(self, awaited: bool) -> None:
        """Set whether a DeleteRecords request waits for followers.

        Meanwhile `ReplicaDeletedRecords` events are sent.
        """
    def wake_followers(self, data_plane: DataPlane) -> None:
        """Complete the delayed Fetches of followers, since their responses contain the new log start offset."""
    def low_watermark(self, alive: list[int]) -> int:
        """Return the lowest log start offset of this replica and of the replicas on the `alive` brokers."""
    def find_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) of the first record at or after `timestamp_ms`, or None."""
    def max_timestamp(self) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) of the record with the largest timestamp, or None."""
    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest epoch that is at most `epoch`, or (-1, -1) if there is none."""
    def set_config(self, config: LogConfig) -> None:
        """Change the settings of the log."""
    @staticmethod
    def flush_times() -> tuple[int, int]:
        """Return (number of log syncs, their total time in nanoseconds) in this process."""
    def flush(self) -> int:
        """Sync the log to disk and return the new recovery point. `OSError` means that the log directory has failed."""
    def flush_due(self, now_ms: int) -> bool:
        """Flush the log if its last flush is at least `flush_ms` ago. Return whether it was flushed."""
    def close(self) -> None:
        """Flush the log, trim its indexes and write the producer snapshot. Later appends are rejected."""
    def retire(self, data_plane: DataPlane) -> None:
        """Reject appends and reads from now on, and complete delayed fetches.

        The caller does this before `close` or `delete`.
        """
    def fail(self, data_plane: DataPlane) -> None:
        """Take the log offline because its log directory failed. All requests that wait for the log are completed."""
    def delete(self) -> None:
        """Rename the directory to `<topic>-<index>.<32 hex>-delete` and remove it."""

# ------------------------------------------------------------------------------------------- partition_log.rs

@final
class PartitionLog:
    """Access of a coordinator to the log of its partition."""

    def __new__(cls, partition: Partition, data_plane: DataPlane) -> PartitionLog:
        """Create the access. Appends complete delayed fetches in `data_plane`."""
    @property
    def high_watermark(self) -> int:
        """The high watermark: all records below this offset are committed."""
    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""
    @property
    def log_end_offset(self) -> int:
        """Offset of the next record."""
    @property
    def max_batch_bytes(self) -> int:
        """Size of the largest batch that the log accepts at present."""
    def append(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Append batches as the leader with `acks=all`, without waiting for the disk.

        Return (first offset, last offset). Raises `NotLeaderError`, `NotEnoughReplicasError`, `BatchTooLargeError` and
        `OSError`.
        """
    def append_transactional(self, batches: bytes, now_ms: int, guard: int | None) -> tuple[int, int]:
        """Append batches of a producer's transaction like `append`. The batches have no sequence numbers.

        A batch that begins the transaction in this partition needs the `guard` of `begin_verification`. A `guard` of
        None disables the check. Also raises `InvalidTxnStateError` without a valid guard, and
        `InvalidProducerEpochError`.
        """
    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> tuple[int, int]:
        """Append the marker that ends a producer's transaction, like `append`.

        Also raises `CoordinatorFencedError`, and `InvalidProducerEpochError` for a fenced producer epoch. With
        `transaction_version` 2, the marker's epoch must be higher than the epoch of the transaction's batches.
        """
    def begin_verification(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool, now_ms: int) -> int:
        """Begin the verification of a transaction. Return the guard for the append of the transaction's first batch.

        The batch may be appended after the transaction coordinator has confirmed that the partition is part of the
        transaction. The guard is 0 if the transaction is already open in this partition, or its coordinator has
        confirmed it. `bumps_epoch` is whether each transaction has its own epoch. Raises `InvalidProducerEpochError`
        for a fenced producer epoch, and `NotLeaderError`.
        """
    def has_completed(self, end_offset: int) -> bool:
        """Return whether all records below `end_offset` are committed, and synced as the log's settings require."""
    def complete(self, end_offset: int, ticket: int) -> None:
        """Sync all records below `end_offset` in the background.

        An `AppendCompleted` event with the ticket reports the result.
        """
    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return batches, starting with the batch that contains `offset`.

        The last batch may be cut, the first is complete. Raises `ValueError` for an offset outside the log.
        """

# -------------------------------------------------------------------------------------- partition_metadata.rs

def read_topic_ids(directories: Sequence[str]) -> list[bytes | OSError | ValueError | None]:
    """Return the topic id (16 bytes) in each partition directory's `partition.metadata` (KIP-516).

    The entry of a directory without the file is None. The entry of a damaged file is a `ValueError`. Releases the GIL
    once.
    """

# ------------------------------------------------------------------------------------------------- producer.rs

@final
class Delivery:
    """The delivery of one record. It keeps its producer open."""

    def done(self) -> bool:
        """Return whether the record is acknowledged or failed."""
    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged. Return its metadata: where it was written.

        `delivery.timeout.ms` bounds the wait. `timeout_s` is a further limit in seconds. Raises the error of a failed
        record (`ClientError`), and `DeliveryError` after `timeout_s`. Ctrl-C ends the wait. Releases the GIL.
        """
    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """Return the error of a failed record, or None for an acknowledged one. The call waits like `result`.

        Raises `DeliveryError` after `timeout_s`.
        """

# ------------------------------------------------------------------------------------------- rows_delivery.rs

@final
class RowsDelivery:
    """The delivery of rows of Arrow data that were sent together. It keeps its producer open."""

    def __len__(self) -> int:
        """Return the number of rows sent."""
    def done(self) -> bool:
        """Return whether every row is acknowledged or failed."""
    def result(self, timeout_s: float | None = None) -> int:
        """Wait until every row is acknowledged. Return the number of rows.

        When all rows are complete, raises the error of the first failed row, with the number of failed rows. Raises
        `DeliveryError` after `timeout_s`. Ctrl-C ends the wait. Releases the GIL.
        """

@final
class ClientTls:
    """The TLS state that all connections of a client share: trusted certificates, own identity, sessions to resume."""

    def __new__(cls, material: object) -> Self:
        """Create the state from an object with the attributes of `pybroker.client.security.tls.KeyMaterial`.

        Raises `SettingError`.
        """
    def session(self, host: str) -> TlsSession:
        """Begin a session with a host, by the name or address of the connection. Raises `AuthenticationError`."""

@final
class TlsSession:
    """The TLS session of one connection, without the socket."""

    @property
    def is_handshaking(self) -> bool:
        """Whether the handshake is in progress, so that requests cannot be sent yet."""
    def receive(self, ciphertext: bytes) -> bytes:
        """Process received ciphertext and return the plaintext in it.

        Raises `AuthenticationError`; an alert is then ready to be sent.
        """
    def send(self, plaintext: bytes) -> int:
        """Buffer plaintext to encrypt, and return the number of bytes accepted. After 0, `take` ciphertext first."""
    def take(self) -> bytes:
        """Return the ciphertext to send now. It may be empty."""
    def end(self) -> None:
        """Announce to the server that no more data follows."""

@final
class SaslCredentials:
    """The SASL mechanism and the credentials of a client. Their representation contains no secret."""

    @staticmethod
    def plain(username: str, password: str) -> SaslCredentials:
        """Return credentials for PLAIN (RFC 4616)."""
    @staticmethod
    def scram(mechanism: str, username: str, password: str, is_token: bool) -> SaslCredentials:
        """Return credentials for SCRAM-SHA-256 or SCRAM-SHA-512.

        With `is_token`, they are a delegation token (KIP-48).
        """
    @staticmethod
    def oauthbearer() -> SaslCredentials:
        """Return credentials for OAUTHBEARER, without a token yet."""
    @staticmethod
    def gssapi(begin: Callable[[str], tuple[Callable[[bytes], bytes | None], bytes]]) -> SaslCredentials:
        """Return credentials for GSSAPI. `begin` begins an exchange with a server's host.

        `begin` returns the function for the next steps, and the client's first token. That function maps a server token
        to the client's next token, or to None at the end. An exception of either function is the reason of the failed
        authentication. Both are called on the threads that authenticate connections.
        """
    def set_token(self, token: str, expires_ms: int | None, extensions: list[tuple[str, str]]) -> None:
        """Set the token for new connections, and its expiry in milliseconds of Unix time."""
    def share(self) -> SaslCredentials:
        """Return other credentials that share the token with these."""
    @property
    def is_abandoned(self) -> bool:
        """Whether no other credentials share the token."""
    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
    def begin(self, host: str) -> tuple[SaslExchange, bytes]:
        """Begin an exchange with a server's host. Return the exchange and its first token.

        Raises `AuthenticationError` if the exchange cannot begin. Releases the GIL, because GSSAPI may send requests to
        another server.
        """

@final
class SaslExchange:
    """One SASL exchange in progress."""

    def step(self, token: bytes) -> bytes | None:
        """Process a server token. Return the next token to send, or None at the end. Raises `AuthenticationError`.

        Releases the GIL, because SCRAM takes milliseconds.
        """
    @property
    def failure(self) -> str | None:
        """The server's error about the credentials before it failed the exchange; None if the mechanism has none."""

@disjoint_base
class Producer(MeasuredProducer):
    """Sends records on its own I/O thread; see `pybroker.client.Producer`."""

    def __new__(
        cls,
        settings: object,
        *,
        acks: int,
        enable_idempotence: bool,
        continues: tuple[int, int, list[tuple[str, int, int]]] | None,
        key_serializer: Callable[[Any], bytes | bytearray | None] | None,
        value_serializer: Callable[[Any], bytes | bytearray | None] | None,
        partitioner: Callable[[bytes | None, list[int], list[int]], int] | None,
        on_delivery: object,
        begin_watching: Callable[[Settlements], object] | None,
    ) -> Self:
        """Create a producer from an object with the attributes of `pybroker.client.settings.ProducerSettings`.

        `continues` is the producer id and epoch of another producer, and (topic, partition, next sequence number) where
        that number is not 0. `on_delivery` is the watcher of every record that is sent without another watcher.
        `begin_watching` is called before the first watched record. Raises `SettingError`.
        """
    def send(
        self,
        topic: str,
        value: Any,
        key: Any = None,
        *,
        partition: int = ...,
        timestamp_ms: int | None = None,
        headers: _Headers | None = None,
        on_delivery: Callable[[Exception | None, RecordMetadata], object] | None = None,
    ) -> Delivery:
        """Append a record to its batch. The call waits up to `max.block.ms` for the topic's metadata and for memory.

        Without a serializer, key and value are bytes, bytearray or None. Without `partition`, the partitioner chooses
        the partition. By default, records with a key are partitioned by its hash, and other records go to the partition
        whose batch is being filled. `timestamp_ms` of None means the current time. Headers are pairs of a name and
        bytes or None, or a dict.

        `on_delivery(error, metadata)` is called on the thread `pybroker-deliveries`, in the order of the offsets of a
        partition. `error` is None for an acknowledged record, and `metadata` is where it was written. An exception of
        the callback is logged. A slow callback delays other callbacks, but no records.

        Raises `SerializationError` if a serializer or the partitioner failed. Raises `RecordError`, `BufferFullError`
        and other `ClientError`s, and `TypeError` for parts that are not bytes. After an error the record was not sent.
        Ctrl-C ends the wait.
        """
    def _post(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int,
        timestamp_ms: int | None,
        headers: _Headers | None,
        watcher: object,
        hold: bool,
    ) -> Outgoing | None:
        """Append a record like `send`, but without waiting. Return None if the record was appended.

        If the append would have to wait, or with `hold`, returns a record for `_post_again`. The settlements return
        `watcher` with the outcome.
        """
    def _post_again(self, outgoing: Outgoing, watcher: object) -> bool:
        """Append a record that had to wait. Return False if it still has to wait.

        The caller then retries when the descriptor of the settlements is readable.
        """
    def _raise_late(self, outgoing: Outgoing) -> None:
        """Raise the error of a record that has waited for `max.block.ms`."""
    def _send_batch(self, capsules: tuple[object, object], topic: str | None) -> RowsDelivery:
        """Append a record for each row of the record batch in the capsules of `__arrow_c_array__`.

        Moves the array out of its capsule. Raises `SettingError`, `RecordError` and the errors of `send`.
        """
    def _send_stream(self, capsule: object, topic: str | None) -> RowsDelivery:
        """Append a record for each row of the stream of record batches in the capsule of `__arrow_c_stream__`.

        The whole stream is read first and moved out of its capsule. Raises the errors of `_send_batch`.
        """
    def _settlements(self) -> Settlements:
        """Return the outcomes of watched records."""

@final
class Outgoing:
    """A serialized record that waits for its topic's metadata or for memory."""

# -------------------------------------------------------------------------------------------------- quorum.rs

@final
class Quorum:
    """A Raft voter without I/O. Method calls change its state, and `ready` returns what to persist and to send.

    The caller reports with `persisted` that a ready is persisted. Entries are (index, term, payload), and a payload is
    a record batch with base offset 0. Messages are (replica, bytes). Snapshots are (index, term, id of 12 bytes).

    A replica is a number. Its low 32 bits are the node id. The next 31 bits identify the directory of the replica's
    log, and are 0 if voters are known by node id alone.
    """

    def __new__(
        cls,
        *,
        key: int,
        voters: list[int],
        is_open: bool,
        election_ticks: int,
        heartbeat_ticks: int,
        message_bytes: int,
        messages_in_flight: int,
        kept_bytes: int,
        hard_state: tuple[int, int | None] | None,
        before: tuple[int, int],
        snapshot: tuple[int, int, bytes] | None,
        terms: list[tuple[int, int]],
        last: int,
        replayed: int,
        tail: list[tuple[int, int, bytes]],
        awaited: tuple[int, int],
    ) -> Quorum:
        """Create a follower from the state on disk.

        `hard_state` is (term, vote). `terms` are (first index, term), ascending. `key` is this replica, which need not
        be a voter. With `is_open`, voters can change and messages of unknown replicas are accepted.

        `before` is (index, term) of the entry before the log's first, or zeros. Entries up to `replayed` are known to
        be committed and are not returned again. `tail` are the entries after `replayed`, up to `last`. A message
        contains entries of at most `message_bytes`, or a single entry. At most `messages_in_flight` messages are
        unacknowledged. `kept_bytes` of applied entries stay in memory.

        `awaited` is (index, term) of the last entry that this voter acknowledged, if the log has lost it; zeros
        otherwise. Raises `QuorumError` if the arguments contradict each other.
        """
    @property
    def is_leader(self) -> bool:
        """Whether this voter is the leader."""
    @property
    def leader(self) -> int | None:
        """The leader that this voter knows, or None."""
    @property
    def term(self) -> int:
        """The current term."""
    @property
    def last_index(self) -> int:
        """Index of the last entry, whether it is persisted or not."""
    def take_losses(self) -> tuple[int | None, list[tuple[int, int, int]]]:
        """Return what this voter has lost, and the voters that the leader found to lack entries since the last call.

        The first is the index that the log must reach before this voter may become candidate, or None. The second is
        (replica, last entry that it acknowledged, last entry that it has). Missing entries are sent again.
        """
    @property
    def wanted(self) -> int | None:
        """Index of the oldest entry that a lagging voter needs and that is not in memory, for `provide`; or None."""
    def progress(self) -> list[tuple[int, int]]:
        """Return (replica, index of the last entry that it is known to have) of voters and learners.

        Empty unless leader.
        """
    def tick(self, now_ms: int) -> bool:
        """Advance the clock by one tick. Return whether `ready` may have tasks."""
    def campaign(self, now_ms: int) -> None:
        """Become candidate, unless this replica is leader, is not a voter, or has lost records.

        If this is the only voter, it is leader when the call returns.
        """
    def step(self, replica: int, message: bytes, now_ms: int) -> tuple[int, int, bytes] | None:
        """Process a message of a replica.

        Raises `QuorumError` for an invalid message or one that contradicts the state. If a snapshot is returned, the
        caller has to fetch it and call `install` or `decline`.
        """
    def install(self, snapshot: tuple[int, int, bytes], voters: list[int]) -> None:
        """Report that an offered snapshot is on the disk. `voters` are the voters in the snapshot."""
    def decline(self) -> None:
        """Report that an offered snapshot cannot be fetched."""
    def propose(self, payload: bytes) -> int:
        """Append a batch to the log and return its index.

        Raises `NotControllerError` unless this voter is the leader.
        """
    def change_voters(self, voters: list[int], renamed: list[tuple[int, int]]) -> None:
        """Apply a committed change of voters: one more, one less, the same ones, or the first ones.

        `renamed` has (old key, new key) of replicas that were known by node id alone. Messages then use the new keys,
        and messages of any replica are accepted.
        """
    def set_learner(self, key: int, follows: bool) -> None:
        """Start or stop to replicate the log to a replica that does not vote, while this voter is the leader."""
    def resign(self) -> None:
        """Resign as leader."""
    @property
    def votes(self) -> bool:
        """Whether this replica is one of the voters."""
    def forget_leader(self) -> None:
        """Report that the leader's process has ended."""
    def transfer_leader(self, voter: int) -> None:
        """Transfer the leadership to another voter."""
    def unreachable(self, voter: int) -> None:
        """Report that messages to a voter may be lost."""
    def ready(self) -> QuorumReady | None:
        """Return the next tasks, or None. The committed entries of earlier readies must be applied before this call."""
    def persisted(self, number: int) -> None:
        """Report that all readies up to this number are persisted."""
    def provide(self, low: int, entries: list[tuple[int, int, bytes]]) -> None:
        """Provide the entries from `low` on that were read from the disk for a lagging voter."""
    def set_snapshot(self, snapshot: tuple[int, int, bytes]) -> None:
        """Set the snapshot for voters that need entries before the start of the log."""
    def forget_before(self, index: int) -> None:
        """Report that the log now begins after this entry."""

# -------------------------------------------------------------------------------------------- quorum_ready.rs

@final
class QuorumReady:
    """Tasks of the caller, in the order of the properties."""

    @property
    def number(self) -> int:
        """The number of this ready, which increases with every ready."""
    @property
    def messages(self) -> list[tuple[int, bytes]]:
        """Messages to send at once."""
    @property
    def snapshot(self) -> tuple[int, int, bytes] | None:
        """The snapshot that replaces the whole log, or None."""
    @property
    def hard_state(self) -> tuple[int, int | None] | None:
        """(term, vote) to persist before the entries, or None."""
    @property
    def entries(self) -> list[tuple[int, int, bytes]]:
        """Entries to persist. If the log already has an entry with the first index, the log is truncated before it."""
    @property
    def persisted_messages(self) -> list[tuple[int, bytes]]:
        """Messages to send after everything else is persisted."""
    @property
    def committed(self) -> list[tuple[int, int, bytes]]:
        """Entries that were committed since the last call."""

def build_record_batch(values: list[bytes], timestamp_ms: int) -> bytes:
    """Return a batch of records without keys, with base offset 0."""

def changes_voters(payload: bytes) -> bool:
    """Return whether a batch changes the set of voters."""

def parse_metadata_batches(buffer: bytes) -> tuple[list[tuple[int, int, int, int, bool, tuple[bytes, ...]]], int]:
    """Parse the complete batches at the start of a buffer, with all checks. Return the batches and their size in bytes.

    Each batch is (base offset, last offset, leader epoch, timestamp, is control, values). Raises `MetadataLogError` if
    the first batch is incomplete, or any batch is corrupt.
    """

# ------------------------------------------------------------------------------------------------ received.rs

@final
class Received:
    """Received records of one partition that the program has not taken yet. `len` is their number."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def next_offset(self) -> int | None:
        """Offset of the next record, or None if no record is left."""
    def __len__(self) -> int: ...
    def take(self, most: int) -> list[Record]:
        """Remove and return up to `most` records. Only these become Python objects."""
    def format(self, layout: RecordFormat, most: int, max_bytes: int) -> FormattedRecords:
        """Remove up to `most` records and return them as text. Stops when the text has `max_bytes`. Releases the GIL.

        A record that cannot be decoded is the last one.
        """
    def put_back(self, count: int) -> None:
        """Make the last `count` taken records the next ones again."""

# -------------------------------------------------------------------------------------------------- record.rs

@final
class Record(Generic[_Key_co, _Value_co]):
    """One record as the program receives it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def leader_epoch(self) -> int:
        """The leader epoch in which the record was written, or -1 if the message format has none."""
    @property
    def key(self) -> _Key_co | None:
        """Bytes or None, or the result of the consumer's `key_deserializer`."""
    @property
    def value(self) -> _Value_co | None:
        """Bytes or None (a tombstone), or the result of the consumer's `value_deserializer`."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...
    def with_parts(self, key: _Key | None, value: _Value | None) -> Record[_Key, _Value]:
        """Return a copy of the record with another key and value."""

# ------------------------------------------------------------------------------------------- record_format.rs

@final
class RecordFormat:
    """The text format of records; see `pybroker.client.text`."""

    def __new__(
        cls,
        *,
        style: str,
        shown: set[str],
        key_separator: bytes,
        line_separator: bytes,
        headers_separator: bytes,
        null_literal: bytes,
        key: str | None,
        value: str | None,
        headers: str | None,
        logs: bool,
    ) -> RecordFormat:
        """Create a format.

        `style` is text, json or nothing. `shown` names the parts to print: timestamp, partition, offset, delivery,
        epoch, headers, key, value. `key`, `value` and `headers` are short names of Kafka's deserializers. Raises
        `ValueError`.
        """

@final
class FormattedRecords:
    """Records of one partition as text."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def text(self) -> bytes: ...
    @property
    def log(self) -> bytes:
        """A log line for each record, if the format requests log lines."""
    @property
    def records(self) -> int:
        """Number of records, including a failed one."""
    @property
    def leader_epoch(self) -> int:
        """Leader epoch of the last record, or -1 if the message format has none."""
    @property
    def failure(self) -> tuple[int, str] | None:
        """(offset, error) of the last record if it could not be decoded, or None."""

# -------------------------------------------------------------------------------------------------- quotas.rs

@final
class QuotaQuery:
    """A client whose quotas the data plane does not know.

    Its requests wait until `set_client_quotas` sets the quotas.
    """

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def principal(self) -> tuple[str, str]:
        """The client's principal as (type, name)."""
    @property
    def client_id(self) -> str:
        """The client id of the request, or an empty text if it has none."""

_QuotaLimit = tuple[float, str | None, str | None]

def set_quotas(
    data_plane: DataPlane, *, version: int, samples: int, sample_ms: int, remembered: int, forgotten_after_ms: int
) -> None:
    """Enforce client quotas from now on, measured over `samples` samples of `sample_ms`.

    A `QuotaQuery` event requests the quotas of each client. A later call changes only the version: with another
    version, all quotas are requested again, and with 0 no client has quotas.

    About `remembered` clients are cached, and as many entities that share quotas, in addition to those of open
    connections. Clients that were idle for `forgotten_after_ms` are removed.
    """

def set_client_quotas(
    data_plane: DataPlane,
    connection: int,
    version: int,
    *,
    produce: _QuotaLimit | None,
    fetch: _QuotaLimit | None,
    request: _QuotaLimit | None,
) -> None:
    """Set the quotas of a connection's client, from the quotas of `version`, and resume the connection.

    Each quota is (limit per second, user, client id). The limit is in bytes, or for `request` in percent of a thread's
    time. The user and client id share the quota; None means that all of them share it.
    """

def count_request_time(data_plane: DataPlane, connection: int, nanoseconds: int) -> int:
    """Count the time of a control request towards its client's quota. Return the `throttle_time_ms` of the response.

    The response must be sent after this call. Nothing is read from the connection during the throttle time.
    """

def mute(data_plane: DataPlane, connection: int, time_ms: int) -> None:
    """Mute a connection for `time_ms` from now on: nothing is read from it. A longer mute in progress is not shortened.

    The response with this `throttle_time_ms` must be sent after this call.
    """

# -------------------------------------------------------------------------------------------- record_table.rs

@final
class RecordTable:
    """The record types of a coordinator's topic, to encode and decode many records at once."""

    def __new__(
        cls, types: list[tuple[int, type, Schema, Schema, int]], check: Callable[[Any], object] | None = None
    ) -> RecordTable:
        """Create a table of (number, key class, key schema, value schema, version in which values are written).

        `check` raises `MalformedMessage` for a decoded value that no valid record has.
        """
    def encode(
        self,
        records: list[tuple[object, object | None, int]],
        timestamp_ms: int,
        *,
        codec: int,
        max_batch_bytes: int,
        producer: tuple[int, int] | None = None,
    ) -> bytes:
        """Encode records, each (key, value or None, version), to batches with base offset 0 and no producer.

        A version of -1 means the type's version. `producer` is (id, epoch); with it, the batches belong to its
        transaction. A batch has at most `max_batch_bytes` before compression, or a single record. Raises the errors of
        `Schema.encode`, and `TypeError` for a key class that is not in the table.
        """
    def decode(
        self, batches: bytes, *, max_bytes: int
    ) -> tuple[
        list[tuple[object, object | None]],
        int,
        int,
        int,
        list[tuple[int, int, int, int, bool | None]],
        list[tuple[int, int, int, object | None, str]],
    ]:
        """Decode the complete batches at the start of a buffer.

        Returns (records as (key, value or None), the offset after the last record, the size of the batches in bytes,
        the number of records skipped because their type is not in the table, transaction rows, rows of records that
        cannot be decoded).

        Control batches contain no records. A transaction row is (begin and end in the list of records, producer id,
        producer epoch, None). The end of a transaction lies between two records: begin and end are equal, and the last
        field is whether the transaction was committed.

        A row of a record that cannot be decoded is (its position in the list of records, first and last offset, the key
        or None, the cause). The key is present if only the value is malformed.

        The records of one batch decompress to at most `max_bytes`. Raises `MalformedMessage` for an invalid batch.
        """

# ---------------------------------------------------------------------------------------- recovery_progress.rs

@final
class RecoveryProgress:
    """The progress of recoveries, shared by all logs that are opened with it."""

    def __new__(cls) -> RecoveryProgress: ...
    @property
    def bytes(self) -> int:
        """Bytes of segments read and checked so far, in steps of one mebibyte."""
    def take_found(self) -> list[tuple[str, list[tuple[str, int, int, str]], list[str]]]:
        """Return the findings of opened logs since the last call: (log name, losses, repairs).

        A loss is (name of the cause, bytes removed from the log, number of files that keep them, description). A repair
        is the description of damage that was repaired without losing a record.
        """

# ------------------------------------------------------------------------------------------------ retention.rs

@final
class RemovedSegments:
    """Segments that were removed from the log and renamed to `.deleted`. The caller has to remove their files."""

    @property
    def log_start_offset(self) -> int:
        """The new log start offset."""
    @property
    def below_start(self) -> int:
        """Number of segments that were wholly below the log start offset."""
    @property
    def over_size(self) -> int:
        """Number of segments that exceeded the size limit of the log."""
    @property
    def too_old(self) -> int:
        """Number of segments in which no record was young enough."""
    @property
    def bytes(self) -> int:
        """Bytes of the segments' records."""
    @property
    def files(self) -> list[str]:
        """Current paths of the segments' files."""

def advance_log_start(partition: Partition, offset: int) -> RemovedSegments:
    """Advance the log start offset to `offset`, at most to the log end offset, and remove the segments wholly below it.

    Releases the GIL. Raises `OSError` with its errno.
    """

def delete_old_segments(
    partition: Partition, *, retention_ms: int | None, retention_bytes: int | None, now_ms: int
) -> RemovedSegments:
    """Remove segments that exceed the retention limits, or are below the log start offset.

    A segment is removed if the log is larger than `retention_bytes`, or if no record is younger than `retention_ms`.
    None means no limit. Only committed records are removed. Releases the GIL. Raises `OSError`.
    """

# ----------------------------------------------------------------------------------------------------- role.rs

@final
class Role:
    """The role of this broker for a partition. Each role belongs to a leader epoch."""

    @staticmethod
    def leader(
        leader_epoch: int, *, partition_epoch: int, followers: Sequence[tuple[int, bool]], min_insync_replicas: int
    ) -> Role:
        """Return the role of the leader, which accepts appends.

        `followers` are the other replicas, as (broker id, whether it is in the ISR). A newer `partition_epoch` ends the
        join of replicas that wait to be added to the ISR.
        """
    @staticmethod
    def follower(leader_epoch: int, *, leader: int) -> Role:
        """Return the role of a follower, which accepts no appends and fetches from the broker `leader`.

        The broker's endpoint is the one in `DataPlane.set_fetch_sources`.
        """
    @staticmethod
    def none(leader_epoch: int) -> Role:
        """Return the role without service: there is no leader, or this broker is not a replica."""

def become_roles(changes: Sequence[tuple[Partition, Role]], data_plane: DataPlane) -> list[OSError | ValueError | None]:
    """Change the roles of many partitions. Requests that wait on the old roles are completed by `data_plane`.

    Within an epoch, the leader's replicas and its ISR may change. Releases the GIL once.

    Returns the error of each partition, or None if its role was changed. With an error the role is unchanged.
    `ValueError` means that the epoch is over or has another leader. `OSError` means that the log could not be prepared.
    """

# --------------------------------------------------------------------------------------------- replication.rs

@final
class ReplicationSettings:
    """The settings of this broker's replication."""

    def __new__(
        cls,
        *,
        node_id: int,
        broker_epoch: int,
        min_bytes: int,
        max_wait_ms: int,
        max_bytes: int,
        response_max_bytes: int,
        first_backoff_ms: int,
        backoff_ms: int,
        fetchers: int,
        socket_timeout_ms: int,
        path_timeout_ms: int,
        socket_receive_buffer_bytes: int,
        leader_throttled_rate: int,
        follower_throttled_rate: int,
        throttle_samples: int,
        throttle_sample_ms: int,
        eager_high_watermark: bool,
        tls: ClientTls | None,
        credentials: SaslCredentials | None,
    ) -> ReplicationSettings:
        """Create the settings.

        `first_backoff_ms` is the backoff after the first failure. It doubles with each failure, up to `backoff_ms`. A
        connection is closed if the leader's system acknowledges no data for `path_timeout_ms`. Throttle rates are in
        bytes per second over `throttle_samples`; 2**63 - 1 means no limit. `tls` and `credentials` apply to connections
        to leaders. None means no encryption, or no authentication.
        """

@final
class ReplicaCaughtUp:
    """A follower has caught up with the high watermark of a partition that this broker leads, and is not in the ISR.

    The event is sent once until a newer partition epoch, or `stop_joining`. Meanwhile the high watermark waits for the
    follower.
    """

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
    @property
    def index(self) -> int:
        """The partition's index."""
    @property
    def leader_epoch(self) -> int:
        """The leader epoch in which the follower caught up."""
    @property
    def partition_epoch(self) -> int:
        """The partition epoch in which the follower caught up.

        At a newer one, the high watermark no longer waits for it.
        """
    @property
    def replica(self) -> int:
        """The follower's broker id."""
    @property
    def broker_epoch(self) -> int:
        """The epoch of the follower's registration, or -1 if its request has none."""

@final
class ReplicaDeletedRecords:
    """A follower's log start offset advanced, in a partition that this broker leads.

    The event is sent only while a DeleteRecords waits for followers.
    """

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
    @property
    def index(self) -> int:
        """The partition's index."""

def lagging_replicas(
    partitions: Sequence[Partition], data_plane: DataPlane, *, max_lag_ms: int, alive: list[int]
) -> list[tuple[int, int, list[int]]]:
    """Return the in-sync replicas that have not caught up for longer than `max_lag_ms`.

    An entry is (position of the partition in `partitions`, its leader epoch, broker ids). The high watermark stops
    waiting for other replicas that lag or are not `alive`. Releases the GIL.
    """

def stop_joining(partition: Partition, data_plane: DataPlane, replicas: list[int]) -> None:
    """End the join of replicas that were not added to the ISR. The high watermark no longer waits for them."""

# --------------------------------------------------------------------------------------------- settlements.rs

@final
class Settlements:
    """The outcomes of a producer's watched records. It does not keep the producer open."""

    def descriptor(self) -> int:
        """Return a file descriptor that is readable when `take` may return outcomes."""
    def take(
        self,
    ) -> list[tuple[list[Any], list[tuple[str, int, int, int]], list[Exception] | None]] | None:
        """Return the outcomes since the last call by batch, or None if no outcomes can follow.

        Makes the descriptor unreadable. A batch is (watchers, [(topic, partition, offset, timestamp in ms)], errors).
        Errors are None for an acknowledged batch, and one per record for a failed batch.
        """
    def rouse(self) -> None:
        """Make the descriptor readable."""

# ------------------------------------------------------------------------------------------ simulated_disk.rs

@final
class SimulatedDisk:
    """A directory that simulates crashes: files that were not synced are lost, complete or torn afterwards.

    It exists only with the feature `simulation`.
    """

    def __new__(cls, root: str) -> SimulatedDisk:
        """Record all changes below `root`, an empty directory."""
    @property
    def root(self) -> Path:
        """The directory."""
    def fill_up_after(self, writes: int | None) -> None:
        """Make writes fail with a full disk after `writes` successful ones. None: no write fails."""
    def fail_syncs(self, fails: bool) -> None:
        """Make every sync of a file fail, or none."""
    def replace_file(self, path: str, content: bytes) -> None:
        """Replace a small file atomically and durably, as `pybroker.storage.log_dirs.atomic_file` does."""
    def crash(self, how: Literal["process", "losing", "torn"], seed: int, root: str) -> None:
        """Write the state after a crash at this moment to another root.

        `process` keeps all data, because only the process ended. `losing` is a power failure that loses all data that
        was not synced. `torn` is a power failure that keeps a part of that data, chosen by `seed`.
        """

# ---------------------------------------------------------------------------------------------- simulation.rs

@final
class SimulatedDataPlane:
    """The hot path and the fetchers of a broker, without sockets, threads and a clock of its own.

    It exists only with the feature `simulation`.
    """

    def __new__(
        cls,
        *,
        node_id: int,
        max_wait_ms: int,
        max_bytes: int,
        response_max_bytes: int,
        first_backoff_ms: int,
        backoff_ms: int,
        session_slots: int,
    ) -> SimulatedDataPlane: ...
    def set_time(self, now_ms: int) -> None:
        """Set the time."""
    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Set the broker epoch that Fetches of this follower contain."""
    def publish(self, table: TopicTable) -> None:
        """Replace the topic table."""
    def drain(
        self,
    ) -> list[ReplicaCaughtUp | ReplicaDeletedRecords | LogDirectoryFailed | SegmentRolled | Exhausted | LogLine]:
        """Remove and return the events since the last call."""
    def become_role(self, partition: Partition, role: Role) -> None:
        """Change the role of one partition like `become_roles`. Raises `ValueError` and `OSError`."""
    def next_request(self, leader: int) -> bytes | None:
        """Return the frame of the next Fetch for a leader, without its size prefix, or None if there is none."""
    def take_response(self, leader: int, frame: bytes) -> None:
        """Process a leader's response, from its correlation id on. Raises `ValueError` for an invalid response."""
    def disconnected(self, leader: int) -> None:
        """Process the loss of the connection to a leader."""
    def serve(self, frame: bytes) -> tuple[int | None, bytes | None]:
        """Process a Produce or Fetch. Return (number of the delayed operation, None) or (None, response).

        Both are None if the connection is closed, or if the request has no response.
        """
    def responses(self) -> list[tuple[int, bytes | None]]:
        """Return the delayed operations that can complete, with their responses."""
    def expire(self, number: int) -> bytes | None:
        """Return the response of a delayed operation that has expired."""
    def lagging(self, partition: Partition, max_lag_ms: int, alive: list[int]) -> tuple[int, list[int]] | None:
        """Return (leader epoch, broker ids) of one partition like `lagging_replicas`; None unless leader."""
    def stop_joining(self, partition: Partition, replicas: list[int]) -> None:
        """End the join of replicas like the function `stop_joining`."""
    def append(self, partition: Partition, batches: bytes) -> tuple[int, int]:
        """Append batches like `PartitionLog.append`."""
    def append_transactional(self, partition: Partition, batches: bytes, guard: int | None) -> tuple[int, int]:
        """Append batches like `PartitionLog.append_transactional`."""
    def begin_verification(
        self, partition: Partition, producer_id: int, producer_epoch: int, *, bumps_epoch: bool
    ) -> int:
        """Begin a verification like `PartitionLog.begin_verification`."""
    def append_marker(self, partition: Partition, marker: tuple[int, int, bool, int, int]) -> tuple[int, int]:
        """Append the end marker of a transaction as the leader. Return (first offset, last offset).

        The marker is (producer id, producer epoch of the marker, whether it commits, coordinator epoch,
        `transaction.version`). Raises the errors of `PartitionLog.append_marker`.
        """
    def questions(self) -> list[tuple[int, tuple[str, int, int], int, list[tuple[str, int]]]]:
        """Return the queries for transaction coordinators since the last call.

        A query is (number of the waiting request, (transactional id, producer id, producer epoch), Produce version,
        partitions).
        """
    def verified(self, number: int, responses: list[tuple[int, str | None] | None]) -> tuple[int | None, bytes | None]:
        """Resume a request of `questions`. Return the result like `serve`.

        `responses` has the reason why nothing may be appended to a partition, or None, for each partition.
        """
    def has_completed(self, partition: Partition, leader_epoch: int, end_offset: int) -> bool:
        """Return the result of `PartitionLog.has_completed`, for a coordinator that was elected in `leader_epoch`."""
    def read(self, partition: Partition, offset: int, max_bytes: int) -> bytes:
        """Return batches like `PartitionLog.read`."""
    def cut(self, partition: Partition, offset: int) -> None:
        """Inject a fault: truncate a log although no leader epoch requires it."""

# --------------------------------------------------------------------------------------------------- stamp.rs

@final
class KeyedStamps:
    """Stamped records with keys for one producer and topic: the frequency of each key, and the sequences so far."""

    def __new__(cls, keys: int, skew: float, seed: int) -> KeyedStamps:
        """Create `keys` different keys, which are numbers in decimal digits.

        `skew` is the exponent of Zipf's law. With 0 all keys are equally frequent.
        """
    def send(
        self,
        producer: Producer,
        topic: str,
        number: int,
        record_size: int,
        count: int,
        due: tuple[int, float] | None = None,
    ) -> None:
        """Send records like `LoadGenerator.send_stamped` for the producer `number`.

        The keys determine the partitions.
        """

@final
class LatencyHistogram:
    """A histogram of latencies from 1 us to ten minutes, with three significant digits.

    Thread-safe. Merges are exact.
    """

    def __new__(cls, encoded: bytes | None = None) -> LatencyHistogram:
        """Create an empty histogram, or decode the result of `encode`. Raises `ValueError` for invalid bytes."""
    def record(self, latency_us: int, count: int) -> None:
        """Record the latency `latency_us` for `count` records."""
    def merge(self, other: LatencyHistogram) -> None:
        """Add all latencies of another histogram."""
    @property
    def count(self) -> int:
        """Number of records."""
    @property
    def max_us(self) -> int:
        """The largest latency in microseconds, or 0 if the histogram is empty."""
    @property
    def mean_us(self) -> float:
        """The mean latency in microseconds, or 0 if the histogram is empty."""
    def at_quantile(self, quantile: float) -> int:
        """Return the latency in microseconds that this fraction (0 to 1) of the records did not exceed."""
    def encode(self) -> bytes:
        """Return the histogram in HdrHistogram's compressed V2 encoding, which other implementations can read."""

@final
class Tally:
    """Sums over acknowledged records. Latency is the time from `send` to the acknowledgement."""

    @property
    def records(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def latency_sum_us(self) -> int: ...
    @property
    def latency_max_us(self) -> int: ...

# --------------------------------------------------------------------------------------------- topic_table.rs

@final
class PartitionEntry:
    """One partition of a topic: the replica on this broker, if any, and the leader."""

    def __new__(
        cls, *, index: int, partition: Partition | None, offline: bool, leader: int, leader_epoch: int
    ) -> PartitionEntry:
        """Create an entry. A `leader` of -1 means that there is no leader.

        `offline` means that this broker has a replica whose log directory failed.
        """

@final
class TopicEntry:
    """A topic with its partitions."""

    def __new__(cls, *, name: str, topic_id: bytes, internal: bool, partitions: list[PartitionEntry]) -> TopicEntry:
        """Create an entry. `topic_id` has 16 bytes. Clients may not produce to an `internal` topic."""

@final
class TopicTable:
    """An immutable snapshot of the topics, with lookup by name and by id."""

    def __new__(cls, *, brokers: dict[str, list[tuple[int, str, int, str | None]]]) -> TopicTable:
        """Create a table without topics.

        `brokers` are (id, host, port, rack) by the listener of the client's connection. They are sent to clients whose
        request reached a broker that is not the leader.
        """
    def replace(self, *, upsert: list[TopicEntry], remove: list[str]) -> TopicTable:
        """Return a new table with changed and removed topics. All other topics are shared with this table."""
    def with_eligible(self, brokers: list[tuple[int, int]]) -> TopicTable:
        """Return the same table with the brokers whose replicas may be in the ISR, as (id, epoch of its registration).

        The high watermark does not wait for replicas on other brokers that are not in the ISR. Before the first call
        all brokers are eligible. A follower's Fetch with an older epoch does not count.
        """
    def __len__(self) -> int:
        """Return the number of topics."""

# ------------------------------------------------------------------------------------ producer_transactions.rs

@final
class Transactions:
    """The native part of a transactional producer: whether records are accepted, and their outcome.

    It sends no requests. Partitions are (topic, index).
    """

    def __new__(cls, producer: Producer) -> Transactions: ...
    def begin(self, producer_id: int, epoch: int, implicit: bool) -> None:
        """Accept records from now on, with this producer id and epoch.

        Without `implicit`, no batch of a partition is sent before the partition was `added`. All batches of an earlier
        transaction must be complete.
        """
    def end(self) -> bool:
        """Accept no more records. Return whether a batch was sent since `begin`.

        The coordinator does not know a transaction without a batch.
        """
    def forget(self) -> None:
        """Clear the failure of a transaction that has ended, unless the failure is fatal."""
    def drop_unsent(self) -> None:
        """Fail the batches that were never sent.

        Batches that a broker may have received are sent until they complete.
        """
    def fail(self, code: int, text: str, fatal: bool) -> None:
        """Fail all waiting batches with this error, and reject later records with it.

        Records are rejected until the next `begin`, or for ever if the error is `fatal`.
        """
    def failure(self) -> tuple[int, str, bool, bool] | None:
        """Return the first failure since `begin`, or None.

        It is (error code or 0, text, whether it is fatal, whether sequence numbers are lost). After a loss of sequence
        numbers the next transaction needs another epoch.
        """
    def take_unadded(self) -> list[tuple[str, int]]:
        """Return the partitions that have to be added to the transaction. Each partition is returned once."""
    def added(self, partitions: list[tuple[str, int]]) -> None:
        """Report that these partitions were added. Their batches are then sent."""
    def descriptor(self) -> int:
        """Return a file descriptor that is readable while `take_unadded` has partitions to return."""

# ---------------------------------------------------------------------------------------------- transactions.rs

@final
class AppendedMarkers:
    """The outcome of markers that were appended together."""

    @property
    def is_awaited(self) -> bool:
        """Whether an `AppendCompleted` event with the ticket follows. Otherwise `error_codes` is final."""
    def error_codes(self) -> list[int]:
        """Return Kafka's error code of each marker.

        The code is 0 if the transaction has ended in the partition, and REQUEST_TIMED_OUT if that is not known yet.
        """

def active_producers(partition: Partition) -> list[tuple[int, int, int, int, int, int]]:
    """Return the producers of a partition's log, ordered by producer id.

    A producer is (id, epoch, last sequence number, time of the last batch in ms, coordinator epoch of the last marker,
    first offset of the open transaction). Fields without a value are -1.
    """

def append_markers(
    data_plane: DataPlane, transactions: Sequence[tuple[Partition, int, int, bool, int, int]], ticket: int
) -> AppendedMarkers:
    """End transactions in partitions that this broker leads, with `acks=all` and without waiting for the disk.

    A transaction is (partition, producer id, producer epoch of the marker, whether it commits, coordinator epoch,
    `transaction.version`). Releases the GIL.
    """

def confirm_transaction(
    partitions: Sequence[Partition],
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
) -> None:
    """Record a transaction coordinator's confirmation that a transaction is open and includes the partitions.

    The first batch with this transactional id is then appended without a verification (KIP-890), unless the transaction
    has ended before. Does nothing if another broker is the leader, or if the log has a later producer epoch or
    coordinator epoch. Releases the GIL.
    """

def forget_producers(partition: Partition, now_ms: int) -> None:
    """Remove expired producers without an open transaction. The log's settings contain the expiration time.

    Releases the GIL.
    """

def transaction_verified(
    data_plane: DataPlane, connection: int, request: int, responses: Sequence[tuple[int, str | None] | None]
) -> None:
    """Evaluate an unresolved request of a transaction again, with the coordinator's response.

    `responses` has an entry for each partition of `UnresolvedRequest.transaction`: (Kafka's error code, message) if
    nothing may be appended, or None if the partition is part of the transaction.
    """

def verify_transactions(data_plane: DataPlane, verify: bool) -> None:
    """Enable or disable the verification of transactions with their coordinator. It is enabled at the start.

    The verification applies to Produce versions that do not add the partition to the transaction.
    """

# -------------------------------------------------------------------------------------------------- verify.rs

@final
class VerifiedLog:
    """The result of the verification of a log."""

    @property
    def findings(self) -> list[tuple[str, str, str, str]]:
        """(file name, severity, kind, text) of each finding, at most 100.

        The severity is `damage`, `unreadable` or `note`. The kind is `records`, `index`, `snapshot`, `leader-epochs` or
        `partition-metadata`.
        """
    @property
    def left_out(self) -> int:
        """Number of findings that are not in `findings`."""
    @property
    def segments(self) -> int:
        """Number of segments."""
    @property
    def bytes(self) -> int:
        """Bytes of the log files."""
    @property
    def batches(self) -> int:
        """Number of valid batches."""
    @property
    def log_start_offset(self) -> int:
        """The log start offset."""
    @property
    def log_end_offset(self) -> int:
        """The offset after the last valid batch."""
    @property
    def set_aside(self) -> list[tuple[str, int]]:
        """(name, bytes) of each file that a recovery has set aside."""

def verify_log(
    directory: str,
    *,
    clean_shutdown: bool,
    recovery_point: int,
    log_start_offset: int,
    high_watermark: int,
    compacted_to: int,
    is_partition: bool,
) -> VerifiedLog:
    """Read and check every file of a log, without changes. Offsets of -1 are unknown. Releases the GIL.

    Raises `OSError` if the directory cannot be read. A file that cannot be read is a finding.
    """

def set_aside_files(directory: str) -> list[tuple[str, int]]:
    """Return (name, bytes) of the files that recoveries have set aside in a log's directory. Raises `OSError`."""
