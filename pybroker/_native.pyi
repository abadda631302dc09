"""The whole contract with Rust: what `native/py` registers, typed and documented.

Sections, one per file of `native/py/src`, in alphabetical order. An extension that was built without the cargo feature
`load` lacks `micro.rs` and `stamp.rs`, and what measures or makes records elsewhere
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
    """Decompresses what a client has compressed with a codec of Kafka's (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd), in
    the framings of record batches; `None` for what decompresses to more than `max_bytes`. Raises ValueError for another
    codec, and for bytes that do not decompress. Releases the GIL."""

def crc32c(data: bytes) -> int:
    """The CRC-32C (RFC 3720)."""

# ------------------------------------------------------------------------------------------------- cleaner.rs

@final
class CleanedLog:
    """What a pass of compaction has done."""

    @property
    def end_offset(self) -> int:
        """The first dirty offset from now on."""
    @property
    def keys(self) -> int:
        """Keys in the dirty part."""
    @property
    def map_full(self) -> bool:
        """The memory for keys was full before the cleanable part ended: another pass is due."""
    @property
    def bytes_indexed(self) -> int:
        """Bytes of the dirty part."""
    @property
    def bytes_read(self) -> int:
        """Bytes of the segments rewritten, before."""
    @property
    def bytes_written(self) -> int:
        """Bytes of the segments rewritten, after."""
    @property
    def records_read(self) -> int:
        """Records of the segments rewritten, before."""
    @property
    def records_written(self) -> int:
        """Records of the segments rewritten, after."""
    @property
    def records_without_key(self) -> int:
        """Records that had no key, and are gone."""
    @property
    def segments_read(self) -> int:
        """Segments, before."""
    @property
    def segments_written(self) -> int:
        """Segments, after."""
    @property
    def index_ms(self) -> int:
        """How long it took to learn the keys."""
    @property
    def total_ms(self) -> int:
        """How long all took."""
    @property
    def files(self) -> list[str]:
        """Files of the segments replaced, as they are called now; they wait to be removed."""

@final
class LogCleaner:
    """Passes of compaction over logs, all of them together at one pace."""

    def __new__(cls, *, max_bytes_per_second: float) -> LogCleaner:
        """The pace counts bytes read and bytes written."""
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
        """Compacts one log below `first_uncleanable`, a segment's base offset; releases the GIL.

        `CleaningEndedError` when it was ended (`stop`, or the log is cut, closed or deleted), `OSError` with its errno,
        `ValueError` for a log whose batches are damaged."""
    def set_pace(self, max_bytes_per_second: float) -> None:
        """Changes the pace from now on."""
    def stop(self) -> None:
        """Ends passes that are under way, and those that are begun afterwards."""

def earliest_dirty_timestamp(partition: Partition, offset: int) -> int | None:
    """The earliest timestamp (ms) that a segment from the one with `offset` on begins with, the active one left out."""

def roll_when_older(partition: Partition, age_ms: int, now_ms: int) -> bool:
    """Begins a new segment when the first record of the active one is older than `age_ms`: whether it did. Raises
    `OSError`."""

def survey_segments(partition: Partition) -> list[tuple[int, int, int]]:
    """(base offset, bytes, largest timestamp in ms or -1) of each segment, the active one last."""

# --------------------------------------------------------------------------------------------------- codec.rs

_Versions = tuple[int, int]
"""Lowest and highest; empty when the lowest is above the highest."""

_FieldRow = tuple[str, str | int, bool, _Versions, _Versions, int, _Versions, object, bool, bool]
"""Name, primitive type or index of an earlier struct, whether it is an array, versions, nullable versions, tag, tagged
versions, default, whether it is ignorable, whether flexible versions write it with compact lengths."""

@final
class Schema:
    """A message class, compiled: encodes and decodes its instances in every version that it declares."""

    def __new__(
        cls,
        name: str,
        structs: list[tuple[type, list[_FieldRow]]],
        versions: _Versions,
        flexible: _Versions,
    ) -> Schema:
        """Checks a table of `msgspec` classes and their fields, each class after those it holds; the last is the
        message. `TypeError` when the table makes no sense."""
    def encode(self, message: object, version: int) -> bytes:
        """Encodes an instance of the message class.

        `UnsupportedVersion` for a version that is not declared or that cannot carry a value, `UnencodableValue` for a
        value that its field's type cannot hold; both name field, value and version."""
    def encode_element(self, element: object, version: int) -> bytes:
        """Encodes an instance of one of the message's structs, as it stands in an array of the message: an array takes
        these bytes in place of the instance. Raises as `encode`, and `TypeError` for another class."""
    def encode_within(self, message: object, version: int, limit: int) -> bytes | None:
        """Encodes an instance of the message class as `encode` does; `None` if it takes more than `limit` bytes."""
    def decode(
        self,
        buffer: bytes | bytearray | memoryview,
        version: int,
        offset: int = 0,
        max_elements: int = ...,
    ) -> tuple[object, int]:
        """Decodes a message that begins at `offset`: (message, bytes read). Takes memory only for bytes that are there.

        `MalformedMessage` names the field and the byte where the bytes stop making sense; `TooManyElements` is raised
        for a message with more than `max_elements` elements of arrays and tagged fields in all, before it is built."""

# ------------------------------------------------------------------------------------------------- columns.rs

@final
class ColumnReader:
    """The columnar face of a fetcher, which hands out nothing otherwise; see `pybroker.client.ColumnFetcher`."""

    def __new__(cls, fetcher: Fetcher) -> ColumnReader:
        """Reads what the fetcher reads."""
    def assign(self, partitions: list[tuple[str, int, int]]) -> None:
        """As `Fetcher.assign`; forgets what was taken and not yet handed out."""
    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """As `Fetcher.seek`."""
    def positions(self) -> list[tuple[str, int, int]]:
        """As `Fetcher.positions`, following the rows that were handed out."""
    def take(
        self, timeout_s: float, columns: list[str], *, end: int | None, max_rows: int, max_bytes: int
    ) -> RecordColumns | None:
        """The next records of one partition, at most `max_rows` and about `max_bytes`, below offset `end`; `None` when
        nothing came in time. The rest is kept. Releases the GIL. Raises `ClientError`."""

@final
class RecordColumns:
    """Records of one partition as Arrow columns: a struct array, by the PyCapsule interface."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Bytes of keys and values, also of those that were not picked."""
    @property
    def next_offset(self) -> int:
        """Where reading goes on: also past offsets without a record for a consumer."""
    def __arrow_c_schema__(self) -> object:
        """A capsule `arrow_schema`."""
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Capsules `arrow_schema` and `arrow_array`, of the columns as they are; as often as wanted, not copied."""

# ------------------------------------------------------------------------------------------- control_batch.rs

def build_control_batch(records: list[tuple[int, bytes]], timestamp_ms: int) -> bytes:
    """One batch of control records, each with its type and its value, with base offset 0."""

def parse_control_batch(buffer: bytes) -> list[tuple[int, bytes]]:
    """Type and value of each record of the control batch at the front of a buffer, which is checked wholly.

    Raises `MetadataLogError` where it is not whole, is corrupt, or holds no control records.
    """

# ------------------------------------------------------------------------------------- data_plane_settings.rs

@final
class DataPlaneSettings:
    """The limits of the data plane, by Kafka's configuration keys; complete, nothing is defaulted in Rust."""

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
        """Buffer sizes of -1 and slices of 0 leave the system's; a negative `connections_max_idle_ms` closes no idle
        connection, and a negative `queued_request_bytes` is no limit. `max_connections_reason` says in the log where
        the number comes from."""

def set_thread_slice(us: int) -> None:
    """Says how long the calling thread runs before others that wait have their turn, 0 for what it has: its slice,
    which Linux takes since 6.12. Threads that it begins have the same. `OSError` where the system forbids it."""

# ------------------------------------------------------------------------------------------- listener_tls.rs

def pem_certificates(text: bytes) -> list[bytes]:
    """The certificates in a PEM text, each in DER. `ValueError` where there is none."""

def pem_key(text: bytes, password: str | None) -> bytes:
    """The private key in a PEM text, in DER; `password` opens an encrypted one (PKCS #8). `ValueError` otherwise."""

def read_pkcs12(content: bytes, password: str) -> tuple[list[bytes], bytes | None, list[bytes]]:
    """A chain and its key, if there is one, and the certificates to trust, all in DER. `ValueError` otherwise."""

@final
class ServerTls:
    """What every connection of a listener shares: its settings, and the key of the tickets that resume sessions."""

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
        """`client_auth` is `none`, `requested` or `required`; `trusted` signs clients' certificates. Cipher suites have
        IANA's names; None: all that are safe. `ValueError` for what cannot be used."""

# ---------------------------------------------------------------------------------------------- data_plane.rs

class _ConnectionLimits(Protocol):
    """How many connections there may be. Rates are connections a second, None without a limit; addresses are texts."""

    @property
    def max_connections(self) -> int:
        """Connections open at a time."""
    @property
    def max_connections_reason(self) -> str:
        """Where that number comes from, for the log."""
    @property
    def creation_rate(self) -> float | None:
        """Over all listeners."""
    @property
    def listeners(self) -> dict[str, tuple[int, float | None, bool]]:
        """Connections, rate, and whether the two above do not hold, by listener."""
    @property
    def max_per_address(self) -> int:
        """Connections open at a time from one address."""
    @property
    def max_of_address(self) -> dict[str, int]:
        """The same of single addresses."""
    @property
    def address_rate(self) -> float | None:
        """Of one address."""
    @property
    def rate_of_address(self) -> dict[str, float]:
        """The same of single addresses."""
    @property
    def window_ms(self) -> int:
        """Length of a sample that rates are counted over."""
    @property
    def windows(self) -> int:
        """How many of them there are."""
    @property
    def most_delayed(self) -> int:
        """Sockets that wait to be closed, as their address is too fast; more are closed at once."""

class _ListenerSettings(Protocol):
    """How a listener is opened."""

    @property
    def name(self) -> str:
        """Its name."""
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
        """The algorithm of accepted connections; None leaves the system's."""
    @property
    def control_only(self) -> bool:
        """Every request that comes in there is a `ControlRequest`, Fetch and ApiVersions too."""
    @property
    def principal(self) -> tuple[str, str] | None:
        """Whom its connections are taken for, as kind and name; None: each has to authenticate by SASL first."""
    @property
    def unauthenticated_max_bytes(self) -> int:
        """`sasl.server.max.receive.size`: the largest frame before that."""
    @property
    def authentication_timeout_ms(self) -> int:
        """How long a connection may take for that, from when it is accepted, in ms."""
    @property
    def tls(self) -> tuple[ServerTls, int] | None:
        """How its connections are encrypted, and how long a handshake may take, in ms; None: not at all."""

@final
class DataPlane:
    """Sockets, the hot path of Produce and Fetch, and the requests that wait. Its threads start with the object."""

    def __new__(cls, settings: DataPlaneSettings) -> DataPlane:
        """Starts `network_threads` processors and the acceptor. `OSError` when threads or descriptors run out."""
    @property
    def event_fd(self) -> int:
        """A file descriptor that is readable while events wait."""
    @property
    def connections(self) -> int:
        """Open connections."""
    @property
    def flush_counts(self) -> tuple[int, int]:
        """Under `flush=group`: syncs so far, and appends that asked for one."""
    def counters(self) -> DataPlaneCounters:
        """What has been counted since the start, at about one moment: it sums counts of all threads, which go on."""
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
        """Up to `limit` events, oldest first."""
    def listen(self, listener: _ListenerSettings) -> int:
        """Binds a listener and returns its port. `OSError` with its errno."""
    def authenticate(self, connection: int, principal: tuple[str, str], lifetime_ms: int | None) -> None:
        """Takes a connection for `principal` from its next request on, for `lifetime_ms` where that is given.

        The answer to the request that proved it is to be sent after this."""
    def name_peer(self, connection: int, principal: tuple[str, str]) -> None:
        """Takes a connection of which a `PeerCertificate` came for `principal`, and goes on with it."""
    def set_listener_tls(self, listener: str, tls: ServerTls, handshake_timeout_ms: int) -> bool:
        """Encrypts connections that come to an encrypted listener from now on by `tls`; False where there is none."""
    def set_connection_limits(self, limits: _ConnectionLimits) -> None:
        """Changes how many connections there may be and how fast they may come; those that are open stay."""
    def respond(self, connection: int, request: int, payload: bytes, *, last: bool = False) -> None:
        """Answers a control request; `payload` is everything after the correlation id. A small answer is sent by the
        calling thread, where the connection has nothing else to do. The `last` one closes the connection: what its
        client has sent behind the request is ignored."""
    def respond_many(self, responses: list[tuple[ControlRequest, bytes]]) -> None:
        """As `respond`, for requests and their payloads."""
    def hold(self, connection: int, request: int) -> None:
        """Says that the answer to a control request waits for what others do: until then it takes none of the room that
        `queued_max_requests` bounds."""
    def retry(
        self,
        connection: int,
        request: int,
        allowed: list[str | bytes] = ...,
        version: int = 0,
        transactional_id: bool = False,
    ) -> None:
        """Evaluates an unresolved request again, against the table published last; topics still unknown are errors.

        Once `set_rights` has been called, the client may use the topics in `allowed` alone, each as the request names
        it; 16 zero bytes stand for the cluster. `transactional_id`: it may write as that of the request. This is
        remembered for as long as `version` is in force; 0: it is not."""
    def set_rights(self, *, decisions: int, version: int) -> None:
        """Has Produce and Fetch ask what their clients may do, by rules of `version`, which is not 0. About `decisions`
        are remembered, 8 bytes each, as they come. A later call changes the version alone."""
    def close_connection(self, connection: int) -> None:
        """Closes a connection when its queued answers are written."""
    def intercept(self, api_keys: list[int]) -> None:
        """Has Python decide about the requests of these APIs, and of no others, before they are worked on: each comes
        up as an `InterceptedRequest`."""
    def proceed(self, connection: int) -> None:
        """Has the intercepted request of a connection worked on."""
    def proceed_unanswered(self, connection: int, *, close: bool) -> None:
        """As `proceed`, but neither that request nor a later one of the connection is answered. `close` closes the
        connection when the request would be answered."""
    def respond_intercepted(self, connection: int, payload: bytes) -> None:
        """Answers the intercepted request of a connection, which is not worked on; `payload` is everything after the
        correlation id."""
    def close_connections(self) -> None:
        """Closes every connection at once, without the answers that are queued."""
    def set_clock_ahead(self, by_ms: int) -> None:
        """Sets the time of appends and fetch sessions ahead of the system's clock, by `by_ms` in all."""
    @property
    def fetcher_threads(self) -> int:
        """Threads that fetch from leaders."""
    def set_replication(self, settings: ReplicationSettings) -> None:
        """Says how this broker replicates; before that it fetches nothing from others. Open connections to other
        brokers stay as they are."""
    def set_read_replicas(self, *, own_rack: str | None, others: list[tuple[int, str]]) -> None:
        """Swaps the racks by which consumers are sent to other replicas (KIP-392): this broker's, and those of the
        brokers that they can reach, by id."""
    def clear_read_replicas(self) -> None:
        """Keeps consumers at the leader."""
    def set_fetch_sources(self, sources: list[tuple[int, str, int, int]]) -> None:
        """Swaps the brokers that are fetched from: id, host, port and broker epoch."""
    def publish(self, table: TopicTable) -> None:
        """Swaps the topics that the hot path sees."""
    def publish_api_versions(self, responses: dict[int, bytes]) -> None:
        """Swaps the answers to ApiVersions, by version: everything after the correlation id. Requests of these versions
        that say nothing unusual are answered by the data plane; the others come up as they do without this."""
    def resume_accepting(self) -> None:
        """Lets `listen` bind listeners again after `stop_accepting`. `OSError` when threads or descriptors run out."""
    def stop_accepting(self) -> None:
        """Closes the listeners; open connections go on."""
    def shut_down(self, *, grace_ms: int) -> None:
        """Answers what is in work for at most `grace_ms`, closes every connection, joins the threads."""

# ------------------------------------------------------------------------------------------------ counters.rs

@final
class DataPlaneCounters:
    """What a data plane has counted since its start."""

    @property
    def apis(self) -> list[ApiCounters]:
        """The APIs of which there were requests, by key."""
    @property
    def processors(self) -> list[ProcessorCounters]:
        """The processors, by number."""

@final
class ApiCounters:
    """What was counted of one API, over all processors."""

    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def requests(self) -> int:
        """Requests begun; those that wait for room or for a decision have not."""
    @property
    def in_work(self) -> int:
        """Requests begun and neither answered nor dropped, those that wait for data or for others included."""
    @property
    def bytes_in(self) -> int:
        """Bytes of the requests, size prefixes included."""
    @property
    def bytes_out(self) -> int:
        """Bytes of the answers, size prefixes included, once they are made, read by the client or not."""
    @property
    def errors(self) -> dict[int, int]:
        """For Produce and Fetch: how often each error code was given, once for each partition or for the whole answer.
        The errors of other APIs are known to those who encode their answers."""

@final
class ProcessorCounters:
    """What one processor has done, over all APIs."""

    @property
    def requests(self) -> int:
        """Requests begun."""
    @property
    def bytes_in(self) -> int:
        """Bytes of the requests."""
    @property
    def bytes_out(self) -> int:
        """Bytes of the answers that this processor made; the control plane sends some itself."""

# ------------------------------------------------------------------------------------------- work_counters.rs

_TopicCounts = tuple[int, int, int, int, int, int, int, int]
"""Bytes in, out and rejected, records in, partitions of Produces, those that failed, of Fetches, those that failed."""

_ClientUse = tuple[str, str, int, int]
"""User and client id, empty where all share the quota; bytes, or nanoseconds of a thread; milliseconds to wait."""

def client_uses(data_plane: DataPlane, most: int) -> ClientUses:
    """What those have used whom a quota or a limit binds, since they are known: of each quota the `most` that used the
    most. Any thread may ask."""

@final
class ClientUses:
    """What clients have used of their quotas; each with the number of those that are left out."""

    @property
    def produce(self) -> tuple[list[_ClientUse], int]:
        """Bytes of Produce requests, by user and client id."""
    @property
    def fetch(self) -> tuple[list[_ClientUse], int]:
        """Bytes of answers to Fetch."""
    @property
    def request(self) -> tuple[list[_ClientUse], int]:
        """Nanoseconds of threads."""
    @property
    def addresses(self) -> tuple[list[tuple[str, int]], int]:
        """Connections accepted, by address; those that have a limit of connections a second."""

def work_counters(data_plane: DataPlane) -> WorkCounters:
    """What a data plane has counted since its start, beside the requests of APIs. Any thread may ask."""

def partition_states(data_plane: DataPlane) -> PartitionStates:
    """How the replicas of a broker stand now, and what was counted of topics. Any thread may ask."""

@final
class WorkCounters:
    """What a data plane has counted beside the requests of APIs, over all threads."""

    @property
    def topics(self) -> _TopicCounts:
        """Of all topics."""
    @property
    def replication_bytes_in(self) -> int:
        """Bytes of records that were fetched from leaders and appended."""
    @property
    def replication_bytes_out(self) -> int:
        """Bytes of records in answers to followers."""
    @property
    def waiting(self) -> tuple[int, int]:
        """Produces and Fetches that wait now."""
    @property
    def expired(self) -> tuple[int, int]:
        """Produces and Fetches that have waited as long as they might."""
    @property
    def times(self) -> list[RequestTimes]:
        """How long requests took, by API."""
    @property
    def bounds_us(self) -> list[int]:
        """The bounds of the histograms in `times`, in microseconds, rising."""
    @property
    def system_threads(self) -> list[int]:
        """The processors' threads as the system numbers them, 0 for one that does not run or is a guest."""
    @property
    def listeners(self) -> list[tuple[str, int, int, int, int]]:
        """Of each listener to which somebody came: its name, open connections, connections accepted since the start,
        milliseconds in which connections waited as they came too fast, and those that connections of addresses that
        were too fast had to wait, one by one, before they were closed."""

@final
class RequestTimes:
    """How long the requests of one API took that are done."""

    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def of_followers(self) -> bool:
        """Whether these are Fetches of followers; those of consumers are apart."""
    @property
    def requests(self) -> int:
        """How many."""
    @property
    def phases(self) -> list[tuple[int, list[int]]]:
        """Queue, local, remote, throttle, send and total: the sum in nanoseconds, and how many took less than each
        bound of `WorkCounters.bounds_us`, and at the end all."""

@final
class PartitionStates:
    """The replicas of one broker at one moment, by topic and index; `len` is how many there are."""

    def __len__(self) -> int: ...
    def rows(self, begin: int, count: int) -> list[tuple[str, int, bool, int, int, int, int, int, int, int, int]]:
        """Some of them: topic, index, whether this broker leads it, bytes, segments, log start, log end and high
        watermark; of a leader also replicas, those in sync, and how many of them `acks=all` asks for."""
    def topics(self, begin: int, count: int) -> list[tuple[str, _TopicCounts]]:
        """Some of the topics of which something was counted, by name."""

# -------------------------------------------------------------------------------------------------- events.rs

@final
class AppendCompleted:
    """What `PartitionLog.complete` was called for is committed and synced, or never will be."""

    @property
    def ticket(self) -> int:
        """The number that it was called with."""

@final
class ControlRequest:
    """A request that Python answers through `DataPlane.respond`."""

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def request(self) -> int:
        """The request's number on its connection."""
    @property
    def api(self) -> int:
        """API key and version in one number, to look both up at once."""
    @property
    def api_key(self) -> int:
        """The API key."""
    @property
    def api_version(self) -> int:
        """The version."""
    @property
    def size(self) -> int:
        """Bytes of the message, with the tagged fields of its header."""
    @property
    def message(self) -> bytes:
        """The message as it came, behind the tagged fields of a flexible header."""
    @property
    def correlation_id(self) -> int:
        """The correlation id; the data plane puts it in front of the answer."""
    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""
    @property
    def principal(self) -> tuple[str, str] | None:
        """Who the client is, as kind and name; `None` while it has not said, on a listener that asks for it."""
    @property
    def listener(self) -> str:
        """The listener's name."""
    @property
    def local_host(self) -> str:
        """The address that the client dialled."""
    @property
    def local_port(self) -> int:
        """The port that the client dialled."""
    @property
    def peer_host(self) -> str:
        """The client's address."""
    @property
    def peer_port(self) -> int:
        """The client's port."""
    @property
    def software(self) -> tuple[str, str] | None:
        """What the client says that it is, in its last usual ApiVersions (KIP-511): name and version; `None` for one
        that does not say."""
    def wait(self) -> None:
        """Notes that it waits for what others do, for how long its parts took."""
    def decode(self, schema: Schema, flexible: bool, max_elements: int) -> object:
        """Decodes the message, after the tagged fields of a flexible header. `MalformedMessage`, and `TooManyElements`
        for one with more elements of arrays and tagged fields in all. Lets other threads run in between."""

@final
class InterceptedRequest:
    """A request of an API that `DataPlane.intercept` names. Its connection stands still until `DataPlane.proceed`,
    `proceed_unanswered` or `respond_intercepted` is called, or the connection is closed."""

    @property
    def request(self) -> ControlRequest:
        """The request; its number counts the connection's requests before it."""

@final
class UnresolvedRequest:
    """A Produce or Fetch that names topics which the table lacks, whose client is to be judged, or that begins a
    transaction in partitions; its connection stands still until `retry`, or `transaction_verified`."""

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
        """Who the client is, as kind and name."""
    @property
    def client_host(self) -> str:
        """The client's address."""
    @property
    def operation(self) -> int | None:
        """The operation that the client is to be judged for, numbered as Kafka's AclOperation; None for none."""
    @property
    def checked(self) -> list[str | bytes]:
        """The topics to judge it for, by name or by id, 16 bytes each."""
    @property
    def transactional_id(self) -> str | None:
        """The transactional id that the client is to be judged for; None for none."""
    @property
    def transaction(self) -> tuple[str, int, int, int, list[tuple[str, int]]] | None:
        """What the coordinator of its transaction is to be asked: transactional id, producer id, producer epoch, the
        version of the Produce, and the partitions as (topic, index). Then `transaction_verified` is to be called, and
        nothing else is to be looked at. None otherwise."""
    @property
    def topics(self) -> list[str]:
        """Unknown topics named by name."""
    @property
    def topic_ids(self) -> list[bytes]:
        """Unknown topics named by id, 16 bytes each."""

@final
class PeerCertificate:
    """A client has shown a certificate; its requests wait until `DataPlane.name_peer` says who it is."""

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def listener(self) -> str:
        """The listener that it came in by."""
    @property
    def peer(self) -> str:
        """The client's address and port."""
    @property
    def certificate(self) -> bytes:
        """The certificate, DER."""

@final
class ConnectionClosed:
    """A connection that Python has seen requests of is gone."""

    @property
    def connection(self) -> int:
        """Its number."""

@final
class Exhausted:
    """Descriptors, memory or mappings have run out: an operation was refused, and may be tried again. Not every refusal
    brings one."""

    @property
    def error(self) -> str:
        """What was refused, and what the system said."""

@final
class LogDirectoryFailed:
    """A write or sync failed: the log directory is to go offline."""

    @property
    def directory(self) -> str:
        """The log directory."""
    @property
    def error(self) -> str:
        """What the system said, with the path."""

@final
class LogLine:
    """A line for the broker's log."""

    @property
    def level(self) -> str:
        """`info`, `warning` or `error`."""
    @property
    def text(self) -> str:
        """The words."""

# ---------------------------------------------------------------------------------------------------- files.rs

@final
class FileSystem:
    """The file system of a directory, open for a sync of all of it. It reports what was lost since it was opened."""

    @staticmethod
    def open(directory: str) -> FileSystem | None:
        """None where a sync of all of it cannot be relied on. `OSError` with its errno."""

def close_logs(
    partitions: Sequence[Partition], *, file_system: FileSystem | None, shared_from: int, threads: int
) -> list[OSError | ValueError | None]:
    """`Partition.close` for many of one file system, on `threads` threads: the error of each, None where it is closed.

    Where `shared_from` of them or more have something to be synced, the file system is synced once. Releases the GIL
    once.
    """

def close_idle_files(partitions: Sequence[Partition], *, most: int) -> tuple[int, int]:
    """Closes files of segments until `most` are open, first those that were not used since the last call; how many were
    open, and how many of them were closed. They are opened again on their next use. Releases the GIL once."""

# -------------------------------------------------------------------------------------------------- forking.rs

def keep_forever(kept: object) -> None:
    """Has an object live until the process has ended, also while the interpreter frees what is left."""

# -------------------------------------------------------------------------------------------------- fetcher.rs

@final
class Fetcher:
    """Reads assigned partitions on an I/O thread of its own; see `pybroker.client.Fetcher`."""

    def __new__(cls, settings: object) -> Fetcher:
        """Takes the attributes of `pybroker.client.settings.FetcherSettings`; no broker is asked before `assign`."""
    def assign(self, partitions: list[tuple[str, int, int]]) -> None:
        """Reads (topic, partition, offset) from now on, and nothing else; offset -1: after the last record, -2: from
        the first; at or above 0 an offset."""
    def add(self, partitions: list[tuple[str, int, int]]) -> None:
        """Reads these partitions too, or from another position; what was read of others stays."""
    def remove(self, partitions: list[tuple[str, int]]) -> None:
        """Reads these partitions no longer; what was read of others stays."""
    def pause(self, topic: str, partition: int, paused: bool) -> bool:
        """Hands out one assigned partition no longer, or again; false when it is not assigned."""
    def seek(self, topic: str, partition: int, offset: int) -> bool:
        """Reads one assigned partition from another position; false when it is not assigned."""
    def position(self, topic: str, partition: int) -> int | None:
        """Where the caller has read one partition to; below 0 until its beginning is found, `None`: not assigned."""
    def epoch(self, topic: str, partition: int) -> int:
        """Leader epoch of the last batch before that position; -1 where nothing was read up to it, or not known."""
    def positions(self) -> list[tuple[str, int, int]]:
        """Where the caller has read to: (topic, partition, offset; below 0 as in `assign` before the first record)."""
    def count(self, timeout_s: float, stamped: bool = False) -> tuple[int, int] | None:
        """Takes the next received batches and reads every record: (records, bytes of keys and values); `None` when
        nothing came in time. With `stamped` it takes their latencies too, for `take_arrivals`. Raises `ClientError`."""
    def take_arrivals(self) -> tuple[Tally, LatencyHistogram]:
        """The stamped records counted since the last call, and the time from their stamps to their arrival. Records too
        short for a stamp are the failed ones."""
    def take(self, timeout_s: float) -> Received | None:
        """Takes the next received batches of one partition; `None` when nothing came in time. Batches of which a
        consumer sees nothing come with no records. Releases the GIL. Raises `ClientError`."""
    def metrics(self) -> dict[str, float]:
        """What the fetcher has done, and how far it is behind, by the names of Kafka's metrics; bytes and ms."""
    def lags(self) -> list[tuple[str, int, int]]:
        """How many records lie between what was handed out of each assigned partition and the end that its last
        response named: (topic, partition, records); 0 before its first response."""
    def arrived_descriptor(self) -> int:
        """A descriptor that is readable when `take` may have something."""
    def clear_signal(self) -> None:
        """Makes the descriptor unreadable; called before `take`."""
    def close(self) -> None:
        """Ends the I/O thread; releases the GIL."""

# --------------------------------------------------------------------------------------------- line_sender.rs

@final
class LineSender:
    """Makes records of lines of text, and sends them to one topic; see `pybroker.client.text`."""

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
        """Keeps the producer open. How a line is parted is `kafka.tools.LineMessageReader`'s."""
    def send(self, block: bytes, is_end: bool) -> int:
        """Sends the lines that end in `block`, and with `is_end` the last one; how many were put into batches.

        Lines may begin in one block and end in another. Waits for metadata and memory, each up to `max.block.ms`, GIL
        released. Raises `RecordError` for a line that cannot be parted, once those before it were sent; then it is of
        no use any more. What cannot be sent otherwise is in `take_failures`.
        """
    def parse(
        self, block: bytes, is_end: bool
    ) -> tuple[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], str | None]:
        """As `send`, but hands the records out: key, value and headers of each, and why no more could be read."""
    def in_flight(self) -> int:
        """Records in batches whose fate is not known yet."""
    def take_failures(self) -> list[tuple[int | None, int | None, BaseException]]:
        """The records that failed since the last call: bytes of key and value (`None`: null), and what they met."""

# ------------------------------------------------------------------------------------------ load_generator.rs

@final
class LoadGenerator:
    """Sends made records with one producer, and measures all that it sends."""

    def __new__(cls, producer: Producer) -> Self:
        """What the producer has sent before counts as well."""
    def send_many(self, topic: str, partition: int, values: bytes, record_size: int) -> int:
        """Adds values of `record_size` bytes that lie behind each other; how many. As `send` otherwise."""
    def send_random_letters(
        self, topic: str, partition: int, record_size: int, count: int, due: tuple[int, float] | None = None
    ) -> None:
        """Adds `count` values of random capital letters, for load generators. As `send` otherwise.

        `due`, in microseconds: the time since the epoch at which a schedule wants the first record sent, and from each
        to the next; their latency counts from then, not from this call.
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
        """As `send_random_letters`, each value beginning with a stamp of 24 bytes: producer u64, sequence u64 from
        `first_sequence` on, time of sending (or due) in microseconds since the epoch i64, all big-endian.

        Sequences count by producer and partition, so that the partition is named. Raises `ValueError` where it is not,
        or where a record has no room for its stamp.
        """
    def begin_phase(self, phase: int) -> None:
        """Records sent from now on belong to phase 0 or 1 of the measurement."""
    def take_window(self) -> Tally:
        """What was acknowledged since the last call."""
    def take_interval(self, phase: int) -> tuple[Tally, LatencyHistogram]:
        """What was acknowledged of a phase since the last call, and its latencies; takes the phase's window too."""
    def summary(self, first_phase: int, quantiles: list[float]) -> tuple[Tally, list[int]]:
        """The phases from `first_phase` on: sums, and the latency in microseconds at each quantile (0 to 1)."""

# ----------------------------------------------------------------------------------------------------- log.rs

@final
class Log:
    """A log in Kafka's files whose batches this node makes itself. Failures of the file system are `OSError`s."""

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
        """Opens the log, or begins one; checks every batch, and cuts what follows the last whole one."""
    @property
    def truncated_bytes(self) -> int:
        """What was cut when it was opened."""
    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""
    @property
    def log_end_offset(self) -> int:
        """Offset that the next record will have."""
    @property
    def size_bytes(self) -> int:
        """Bytes of its segments."""
    def append(self, batches: bytes, leader_epoch: int, now_ms: int) -> tuple[int, int]:
        """Appends batches at the end, in `leader_epoch`; (first offset, last offset). Not yet on the device."""
    def append_as_follower(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Appends batches that have their offsets and epochs; `ValueError` where they go back."""
    def read(self, offset: int, max_bytes: int) -> bytes:
        """Whole batches from the one that holds `offset`, the last perhaps cut; `ValueError` outside the log."""
    def flush(self) -> int:
        """Waits until all is on the device; the log end offset of what is."""
    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Removes the records from `offset` on."""
    def restart_at(self, offset: int, now_ms: int) -> None:
        """Removes everything: the log starts and ends at `offset`."""
    def advance_start(self, offset: int) -> list[Path]:
        """Moves the log start forward, at most to the end; files that are out of use then, and wait to be removed."""
    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to `epoch` that the log has, and where it ends; (-1, -1) for none."""
    def close(self) -> None:
        """Flushes and ends appending."""

@final
class SegmentRolled:
    """A log began a new segment: it is due to be flushed, so that a crash finds little to recover."""

    @property
    def topic(self) -> str:
        """The topic's name."""
    @property
    def index(self) -> int:
        """The partition's index."""

# ---------------------------------------------------------------------------------------------- log_config.rs

@final
class LogConfig:
    """The settings of one log, by Kafka's topic configuration; complete, nothing is defaulted in Rust."""

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
        """`segment_jitter_ms` is the jitter drawn for this log, not the bound; `require_keys`: compacted topics.

        `compression_type`: "producer", "uncompressed" or a codec; `compression_level` is that codec's, None its own
        default."""

# ---------------------------------------------------------------------------------------------- log_opening.rs

@final
class LogOpening:
    """What is known of `<directory>/<topic>-<index>` before it is opened."""

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
        """A recovery point or a log start of -1 is not known. `progress` counts what a recovery has read.

        `claimed`: `read_topic_ids` has found this topic's id in the directory, which is not looked for again.
        A log that ends before `recovery_point` or `high_watermark` has lost records: `RecoveryProgress.take_found`.
        """

def open_logs(openings: Sequence[LogOpening], *, now_ms: int) -> list[Partition | OSError | ValueError]:
    """Opens (recovers, creates) logs, one after the other: each partition, or its error. Releases the GIL once."""

# ------------------------------------------------------------------------------------------------ log_walk.rs

_FileRecord = tuple[int, int, int, bytes | None, bytes | None, list[bytes]]
"""Offset, timestamp, sequence number, key, value, names of the headers."""

_FileMessage = tuple[int, int, int, bool, bytes | None, bytes | None]
"""Offset, timestamp, checksum, whether that is right, key, value."""

@final
class FileBatch:
    """A batch of a file of batches, or a message of format 0 or 1, as it stands there."""

    @property
    def position(self) -> int:
        """Where it starts."""
    @property
    def size(self) -> int:
        """Bytes."""
    @property
    def magic(self) -> int:
        """The format."""
    @property
    def is_valid(self) -> bool:
        """Whether its checksum is right."""
    def header(self) -> tuple[int, int, int, int, int, int, int, int, int, int, int, int] | None:
        """(base offset, last offset, record count, base sequence, last sequence, producer id, producer epoch, leader
        epoch, attributes, base timestamp, largest timestamp, checksum); `None` before format 2."""
    def message(self) -> tuple[int, int, int, int] | None:
        """(offset, attributes, timestamp, checksum) of a message of format 0 or 1; `None` for later formats."""
    def messages(self) -> tuple[list[_FileMessage], ValueError | None]:
        """The message, or those that it wraps, and why they cannot be read; none unless it was read with its bytes."""
    def records(self) -> tuple[list[_FileRecord], ValueError | None]:
        """Its records as far as they can be read, and why not all of them; none unless it was read with its bytes."""

@final
class LogWalk:
    """Walks a file of batches without trust: damage ends it, a wrong checksum does not."""

    @staticmethod
    def open(path: str, limit: int) -> LogWalk:
        """Begins at the start of the file; what lies beyond `limit` bytes is ignored. `OSError`."""
    @property
    def end(self) -> int:
        """Bytes of the file, at most the limit."""
    def batches(self, limit: int, *, with_bytes: bool) -> tuple[list[FileBatch], ValueError | OSError | None]:
        """The next batches, about `limit` bytes of them, and what ended the walk; none at the end, or where no whole
        batch follows. `with_bytes`: their records will be asked for."""
    def last_offset_at(self, position: int, limit: int) -> int | None:
        """The last offset of the batch at `position`, when all of it lies within `limit` bytes. `ValueError`,
        `OSError`."""
    def find(self, position: int, offset: int) -> FileBatch | None:
        """The first batch from `position` on whose last offset is `offset` or more. `ValueError`, `OSError`."""

# --------------------------------------------------------------------------------------- measured_producer.rs

@disjoint_base
class MeasuredProducer:
    """What every use of the native producer shares."""

    def outcomes(self) -> list[tuple[str, int, int, int]]:
        """(topic, partition, records acknowledged, records given up) of partitions where any are."""
    def _identity(self) -> tuple[int, int]:
        """Producer id and epoch; waits up to `max.block.ms` for them, GIL released. Raises `SettingError` without
        idempotence, and `ClientError`."""
    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; waits for its metadata as `send` does."""
    def flush(self, timeout_s: float) -> None:
        """Waits until everything sent so far is acknowledged or given up. Raises `DeliveryError` when time is up."""
    def close(self, timeout_s: float) -> None:
        """Flushes, then ends the I/O thread; what still waits fails. Raises as `flush`."""
    def metrics(self) -> dict[str, float]:
        """What the producer has done and holds, by the names of Kafka's producer metrics.

        Totals (`record-send-total`: records acknowledged; `record-error-total`), means and maxima (`batch-size-avg`,
        `request-latency-max`, ms) since it was made; rates (`byte-rate`, per second) over the last
        `metrics.num.samples` times `metrics.sample.window.ms`; and what is the case now (`requests-in-flight`,
        `buffer-available-bytes`).
        """
    def incomplete_batches(self) -> int:
        """Batches of records that are not acknowledged and not given up."""
    def _failures(self, *, take: bool) -> list[tuple[Exception, str, int, int]]:
        """Records that were not delivered and whose failure nobody has taken: what the first met, topic, partition, and
        how many there are. With `take` they are forgotten. Those of transactions are not among them."""
    def raise_failure(self) -> None:
        """Raises the first failure of a record, if any failed."""

# --------------------------------------------------------------------------------------------------- micro.rs

def build_batch(values: list[bytes], timestamp_ms: int, codec: str = "none") -> bytes:
    """A v2 batch of records without keys and headers, with base offset 0 and no producer id.

    `ValueError` for more than a batch can hold (2 GiB)."""

def decode_varints(data: bytes) -> bytes:
    """The 64-bit integers, in the machine's byte order, whose zigzag varints stand one after the other in `data`.

    `ValueError` for a varint that is cut or has more than 64 bits."""

def down_convert(batch: bytes, magic: int) -> bytes:
    """The messages of format v0 or v1 that an older consumer is given for a batch. `ValueError`: there are none."""

def encode_varints(values: Buffer) -> bytes:
    """The zigzag varints of a buffer of 64-bit integers."""

def search_index(entries: bytes, relative_offset: int) -> int:
    """The position in the last entry of an offset index that is not above `relative_offset`; 0 when there is none.

    Entries are 8 bytes: relative offset and position, big-endian, ascending."""

def up_convert(messages: bytes) -> bytes:
    """The v2 batch that a set of v0 or v1 messages is stored as. `ValueError` says what is wrong with the set."""

def validate_batch(batch: bytes) -> int:
    """The number of records in a batch as a producer sends it. `ValueError` says what is wrong with it."""

def zigzag(values: Buffer) -> bytes:
    """A buffer of 64-bit integers, zigzag-coded, as unsigned 64-bit integers in the machine's byte order."""

# --------------------------------------------------------------------------------------------------- moves.rs

@final
class LogMove:
    """A move of a log to another directory, as it is watched and ended while `LogMover.move_log` is at work."""

    def __new__(cls) -> LogMove: ...
    @property
    def bytes(self) -> int:
        """Bytes of records that the future replica has."""
    @property
    def end_offset(self) -> int:
        """The future replica has every record below this offset."""
    def cancel(self) -> None:
        """Ends the move, unless the log lives in its new place at this very moment."""

@final
class LogMover:
    """Moves of logs between log directories, all of them together at one pace."""

    def __new__(cls, *, max_bytes_per_second: float) -> LogMover:
        """The pace counts bytes copied."""
    def move_log(
        self, partition: Partition, state: LogMove, *, future: str, deleted_id: str
    ) -> tuple[str, OSError | None]:
        """Fills the directory that `prepare_move` has made and lets it take the log's place; releases the GIL.

        Appends, reads and flushes go on. The old directory is renamed to `<topic>-<index>.<deleted_id>-delete`;
        returned is what it is called now, and why it could not be renamed. `MoveEndedError` when the move was ended
        (`cancel`, `stop`, or the log is cut, closed, deleted or offline), `OSError` with its errno and the file's
        name, `ValueError` for a file that is not what its name says: the log goes on where `Partition.directory`
        says."""
    def set_pace(self, max_bytes_per_second: float) -> None:
        """Changes the pace from now on."""
    def stop(self) -> None:
        """Ends moves that are under way, and those that are begun afterwards."""

def move_count(directory: str) -> int:
    """How often the log in a partition's directory was moved. `OSError`, `ValueError` when that is damaged."""

def prepare_move(partition: Partition, future: str) -> None:
    """Makes the directory of a future replica, durably. `OSError` with its errno and the file's name."""

# ----------------------------------------------------------------------------------------- network_threads.rs

def unlisten(data_plane: DataPlane, listener: str) -> bool:
    """Closes a listener; its connections end when what they have in work is answered. False where there is none."""

def network_threads(data_plane: DataPlane) -> int:
    """Threads that serve connections."""

def set_network_threads(data_plane: DataPlane, count: int) -> None:
    """Has so many threads serve, 1 to 64. Connections stay, and what they have in work. `OSError` when threads or
    descriptors run out: then there are as many as could be begun."""

# ----------------------------------------------------------------------------------------------- partition.rs

@final
class Partition:
    """A replica on this broker. Opened (`open_logs`) without a role: `become_roles` lets it serve."""

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
        """The log directory that the log lives in."""
    @property
    def log_start_offset(self) -> int:
        """First readable offset."""
    @property
    def log_end_offset(self) -> int:
        """The offset that the next record gets."""
    @property
    def high_watermark(self) -> int:
        """Consumers read below this offset."""
    @property
    def is_missing_records(self) -> bool:
        """Whether the opening of its log has found that records are missing which may have been acknowledged."""
    @property
    def lags_its_epoch(self) -> bool:
        """Whether consumers may have seen more than the high watermark, of a leader that was just elected (KIP-207)."""
    @property
    def last_stable_offset(self) -> int:
        """`read_committed` consumers read below this offset."""
    @property
    def recovery_point(self) -> int:
        """Everything below this offset is on disk."""
    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
    @property
    def leader_epoch(self) -> int:
        """The leader epoch in force, -1 before the first."""
    @property
    def role(self) -> str:
        """What this broker is to the partition: `leader`, `follower` or `none`."""
    def set_throttled(self, *, leader: bool, follower: bool) -> None:
        """Says whether what it sends to followers, and what it fetches, is throttled (KIP-73)."""
    def await_deletion(self, awaited: bool) -> None:
        """Says whether somebody waits for followers to delete records: `ReplicaDeletedRecords` comes up meanwhile."""
    def wake_followers(self, data_plane: DataPlane) -> None:
        """Answers followers that wait for records: they learn where this log starts."""
    def low_watermark(self, alive: list[int]) -> int:
        """Where the earliest log of this replica and of those of the `alive` brokers starts."""
    def find_timestamp(self, timestamp_ms: int) -> tuple[int, int, int] | None:
        """(timestamp, offset, leader epoch) of the first record at or after `timestamp_ms`."""
    def max_timestamp(self) -> tuple[int, int, int] | None:
        """(timestamp, offset, leader epoch) of the record with the largest timestamp."""
    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch not above `epoch`; (-1, -1) when there is none."""
    def set_config(self, config: LogConfig) -> None:
        """Puts new settings in force."""
    @staticmethod
    def flush_times() -> tuple[int, int]:
        """How many times this process has made a log durable, and for how many nanoseconds."""
    def flush(self) -> int:
        """Syncs the log to disk; the new recovery point. `OSError`: the directory has failed."""
    def flush_due(self, now_ms: int) -> bool:
        """Does so when the last time is `flush_ms` ago; whether it did."""
    def close(self) -> None:
        """Flushes, trims the indexes, writes the producer snapshot; nothing is appended afterwards."""
    def retire(self, data_plane: DataPlane) -> None:
        """Refuses appends and reads from now on; waiting fetches are answered. Before `close` or `delete`."""
    def fail(self, data_plane: DataPlane) -> None:
        """The log directory failed: takes the log offline; all that waits for it is answered."""
    def delete(self) -> None:
        """Renames the directory to `<topic>-<index>.<32 hex>-delete` and removes it."""

# ------------------------------------------------------------------------------------------- partition_log.rs

@final
class PartitionLog:
    """A partition as the coordinator that lives in it writes and reads it."""

    def __new__(cls, partition: Partition, data_plane: DataPlane) -> PartitionLog:
        """Appends wake the fetches that wait in `data_plane`."""
    @property
    def high_watermark(self) -> int:
        """What lies below is committed."""
    @property
    def log_start_offset(self) -> int:
        """Offset of the first record."""
    @property
    def log_end_offset(self) -> int:
        """Offset that the next record will have."""
    @property
    def max_batch_bytes(self) -> int:
        """The largest batch that the log takes now."""
    def append(self, batches: bytes, now_ms: int) -> tuple[int, int]:
        """Appends as leader, for all replicas in sync: (first offset, last offset). Waits for no disk.
        `NotLeaderError`, `NotEnoughReplicasError`, `BatchTooLargeError`, `OSError`."""
    def append_transactional(self, batches: bytes, now_ms: int, guard: int | None) -> tuple[int, int]:
        """As `append`, for batches of a producer's transaction, which have no sequence numbers. A batch that begins the
        transaction here needs the `guard` of `begin_verification`, unless it is None: nobody verifies. Also
        `InvalidTxnStateError` without one that still holds, `InvalidProducerEpochError`."""
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
        """Appends the marker that ends a producer's transaction, as `append` does. Also `CoordinatorFencedError`, and
        `InvalidProducerEpochError`: by `transaction_version` 2 the marker's epoch is beyond that of the batches."""
    def begin_verification(self, producer_id: int, producer_epoch: int, *, bumps_epoch: bool, now_ms: int) -> int:
        """The guard that the transaction's first batch here is to be appended with, once its coordinator says that the
        partition is part of it; 0 where the transaction is open here. `bumps_epoch`: each transaction has an epoch of
        its own. `InvalidProducerEpochError` for an epoch that has gone by, `NotLeaderError`."""
    def has_completed(self, end_offset: int) -> bool:
        """Whether everything below is committed, and on the device where the log's settings want it to be by now."""
    def complete(self, end_offset: int, ticket: int) -> None:
        """Sync everything below in the background; an `AppendCompleted` with the ticket reports the attempt."""
    def read(self, offset: int, max_bytes: int) -> bytes:
        """Batches from the one that holds `offset`, the last perhaps cut, the first not. `ValueError` outside of it."""

# -------------------------------------------------------------------------------------- partition_metadata.rs

def read_topic_ids(directories: Sequence[str]) -> list[bytes | OSError | ValueError | None]:
    """The topic id (16 bytes) in each partition directory's `partition.metadata` (KIP-516), `None` without the file.

    A `ValueError` stands for a file that is damaged. Releases the GIL once.
    """

# ------------------------------------------------------------------------------------------------- producer.rs

@final
class Delivery:
    """The fate of one record. Keeps its producer open."""

    def done(self) -> bool:
        """Whether the fate is known."""
    def result(self, timeout_s: float | None = None) -> RecordMetadata:
        """Wait until the record is acknowledged: where it was written.

        Waits as long as the fate is not known, which `delivery.timeout.ms` bounds; at most `timeout_s` seconds, where
        that is given. Raises what the record was given up for (`ClientError`), and `DeliveryError` after the timeout.
        Ctrl-C ends the wait. Releases the GIL.
        """
    def exception(self, timeout_s: float | None = None) -> Exception | None:
        """What the record was given up for, or None; waits as `result`. Raises `DeliveryError` after the timeout."""

# ------------------------------------------------------------------------------------------- rows_delivery.rs

@final
class RowsDelivery:
    """The fate of rows of Arrow data that were sent together. Keeps its producer open."""

    def __len__(self) -> int:
        """How many rows were sent."""
    def done(self) -> bool:
        """Whether the fate of every row is known."""
    def result(self, timeout_s: float | None = None) -> int:
        """Wait until every row is acknowledged: how many there are.

        Raises what the first row that was not delivered was given up for, with the count, when all are decided; and
        `DeliveryError` after the timeout. Ctrl-C ends the wait. Releases the GIL.
        """

@final
class ClientTls:
    """What all connections of a client share that go through TLS: trust, identity, and the sessions to resume."""

    def __new__(cls, material: object) -> Self:
        """Takes the attributes of `pybroker.client.security.tls.KeyMaterial`. Raises `SettingError`."""
    def session(self, host: str) -> TlsSession:
        """A session to a host, by the name or address that was connected to. Raises `AuthenticationError`."""

@final
class TlsSession:
    """One connection's TLS, without its socket."""

    @property
    def is_handshaking(self) -> bool:
        """Whether nothing of a request has left yet."""
    def receive(self, ciphertext: bytes) -> bytes:
        """Take what came, and return the plaintext in it. Raises `AuthenticationError`: an alert waits to be sent."""
    def send(self, plaintext: bytes) -> int:
        """Take plaintext, and return how much there was room for; none: take ciphertext first."""
    def take(self) -> bytes:
        """The ciphertext that is to be sent now; it may be empty."""
    def end(self) -> None:
        """Announce that nothing more comes."""

@final
class SaslCredentials:
    """Who connects, and how that is shown. Shows no secret."""

    @staticmethod
    def plain(username: str, password: str) -> SaslCredentials:
        """Of PLAIN (RFC 4616)."""
    @staticmethod
    def scram(mechanism: str, username: str, password: str, is_token: bool) -> SaslCredentials:
        """Of SCRAM-SHA-256 or SCRAM-SHA-512; `is_token`: of a delegation token (KIP-48)."""
    @staticmethod
    def oauthbearer() -> SaslCredentials:
        """Of OAUTHBEARER, without a token yet."""
    @staticmethod
    def gssapi(begin: Callable[[str], tuple[Callable[[bytes], bytes | None], bytes]]) -> SaslCredentials:
        """Of GSSAPI: a function from a server's host to the exchange's next function and its first token.

        The next one takes a token of the server's and returns the next of the client's, None at the end. What either
        raises is why signing in fails. They are called on the threads that sign connections in.
        """
    def set_token(self, token: str, expires_ms: int | None, extensions: list[tuple[str, str]]) -> None:
        """The token of connections that are made from now on, and when it ends in milliseconds of Unix time."""
    def share(self) -> SaslCredentials:
        """Other credentials that share the token with these."""
    @property
    def is_abandoned(self) -> bool:
        """Whether nobody else shares the token."""
    @property
    def mechanism(self) -> str:
        """The mechanism's name."""
    def begin(self, host: str) -> tuple[SaslExchange, bytes]:
        """A new exchange with a server's host, and its first token. Raises `AuthenticationError` where there is none.

        Releases the interpreter lock: with GSSAPI another server may be asked.
        """

@final
class SaslExchange:
    """One exchange that has begun."""

    def step(self, token: bytes) -> bytes | None:
        """Decide about a token of the server's: the next one to send, or None at the end. Raises `AuthenticationError`.

        Releases the interpreter lock: with SCRAM it takes milliseconds.
        """
    @property
    def failure(self) -> str | None:
        """What the server said of the credentials before it failed the exchange, where the mechanism lets it."""

@disjoint_base
class Producer(MeasuredProducer):
    """Sends records on an I/O thread of its own; see `pybroker.client.Producer`."""

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
        """Takes the attributes of `pybroker.client.settings.ProducerSettings`. Raises `SettingError`.

        `continues` is another producer's id and epoch, and (topic, partition, next sequence number) where it is not 0.
        `on_delivery` watches every record that `send` is given no other watcher for; `begin_watching` is called before
        the first watched one.
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
        """Put a record in its batch. Waits up to `max.block.ms` for the topic's metadata and for memory.

        Key and value are bytes (or bytearray) or None, where no serializer makes bytes of them. Without `partition`
        the partitioner chooses: by default records with a key go by its hash, others to the partition that is being
        filled. `timestamp_ms` is now where it is None. Headers are pairs of a name and bytes or None, or a dict.

        `on_delivery(error, metadata)` is called on the thread `pybroker-deliveries`, in the order of the offsets of a
        partition: with None and where the record was written, or with what it was given up for. What it raises is
        logged; it delays other callbacks, never a record.

        Raises `SerializationError` (a serializer or partitioner failed), `RecordError`, `BufferFullError` and other
        `ClientError`, and `TypeError` for parts that are no bytes; then the record was not sent. Ctrl-C ends the wait.
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
        """As `send`, but without waiting: adds the record, and `None`; where it would have to wait, or with `hold`, a
        record for `_post_again`. The settlements hand out `watcher` with the outcome."""
    def _post_again(self, outgoing: Outgoing, watcher: object) -> bool:
        """Adds a record that had to wait; false where it still has to, until the settlements' descriptor is
        readable."""
    def _raise_late(self, outgoing: Outgoing) -> None:
        """Raises what a record meets that has waited for `max.block.ms`."""
    def _send_batch(self, capsules: tuple[object, object], topic: str | None) -> RowsDelivery:
        """Adds a record for every row of the record batch in the capsules of `__arrow_c_array__`. Takes the
        array out of its capsule. Raises `SettingError`, `RecordError`, and as `send` otherwise."""
    def _send_stream(self, capsule: object, topic: str | None) -> RowsDelivery:
        """Adds a record for every row of the stream of record batches in the capsule of `__arrow_c_stream__`. Reads
        the stream to its end first, and takes it out of its capsule. Raises as `send_batch`."""
    def _settlements(self) -> Settlements:
        """What became of watched records."""

@final
class Outgoing:
    """A record, serialized, that waits for its topic's metadata or for memory."""

# -------------------------------------------------------------------------------------------------- quorum.rs

@final
class Quorum:
    """A Raft voter without I/O: calls change it, `ready` says what to persist and to send, `persisted` that it is done.

    Entries are (index, term, payload), a payload being a record batch with base offset 0. Messages are (replica,
    bytes). Snapshots are (index, term, id of 12 bytes). Replicas are numbers: the node id in the low 32 bits, and what
    stands for the directory of its log in the 31 above them, 0 where voters are known by their node ids alone.
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
        """A follower as the disk has it. `hard_state` is (term, vote), `terms` are (first index, term) ascending.

        `key` is this replica, which need not be one of the voters. With `is_open` voters come and go, and messages of
        replicas that are not known are taken.

        `before` is (index, term) of the entry before the log's first, zeros for none. Entries up to `replayed` are
        known to be committed and are not returned again; `tail` are those after it, up to `last`. A message holds
        entries of `message_bytes` or a single one, and `messages_in_flight` go unanswered; applied entries of
        `kept_bytes` stay in memory. `awaited` is (index, term) of the last entry that this voter had acknowledged,
        where the log has lost it, zeros otherwise. Raises `QuorumError` when these do not fit together.
        """
    @property
    def is_leader(self) -> bool:
        """Whether this voter leads."""
    @property
    def leader(self) -> int | None:
        """The leader as far as this voter knows."""
    @property
    def term(self) -> int:
        """The term."""
    @property
    def last_index(self) -> int:
        """Index of the last entry, persisted or not."""
    def take_losses(self) -> tuple[int | None, list[tuple[int, int, int]]]:
        """What this voter lost and waits for: the index that its log has to reach again before it may lead, None where
        nothing is lost. And voters that a leader found to lack entries since the last call: (replica, last entry that
        it had acknowledged, last entry that it has). The entries are sent again."""
    @property
    def wanted(self) -> int | None:
        """Index of the oldest entry that a lagging voter needs and that is not in memory: `provide`."""
    def progress(self) -> list[tuple[int, int]]:
        """(replica, index of the last entry that it is known to have), of learners too; empty unless this leads."""
    def tick(self, now_ms: int) -> bool:
        """Counts a tick of the clock; whether something may be ready."""
    def campaign(self, now_ms: int) -> None:
        """Stands for election; the only voter is leader when the call returns."""
    def step(self, replica: int, message: bytes, now_ms: int) -> tuple[int, int, bytes] | None:
        """Takes a replica's message. Raises `QuorumError` for one that is none, or that says what cannot be.

        A snapshot that is returned is to be fetched: `install` or `decline`.
        """
    def install(self, snapshot: tuple[int, int, bytes], voters: list[int]) -> None:
        """Notes that an offered snapshot is on the disk, with those who vote by it."""
    def decline(self) -> None:
        """Notes that an offered snapshot cannot be fetched."""
    def propose(self, payload: bytes) -> int:
        """Puts a batch into the log and returns its index. Raises `NotControllerError` unless this voter leads."""
    def change_voters(self, voters: list[int], renamed: list[tuple[int, int]]) -> None:
        """Puts a committed change of voters in force: one more, one less, the same ones, or the first ones.

        `renamed` has (old key, key) of replicas that were known by their node ids alone: messages speak of their keys
        from now on, and any replica may write to this one.
        """
    def set_learner(self, key: int, follows: bool) -> None:
        """Sends the log to a replica that does not vote, while this voter leads, or sends it no more."""
    def resign(self) -> None:
        """Leads no more."""
    @property
    def votes(self) -> bool:
        """Whether this replica is one of the voters."""
    def forget_leader(self) -> None:
        """Notes that the leader's process has ended."""
    def transfer_leader(self, voter: int) -> None:
        """Hands the leadership to another voter."""
    def unreachable(self, voter: int) -> None:
        """Notes that what was sent to a voter may be lost."""
    def ready(self) -> QuorumReady | None:
        """What there is to do; what an earlier one held as committed is in force."""
    def persisted(self, number: int) -> None:
        """Notes that the readies up to this number are persisted."""
    def provide(self, low: int, entries: list[tuple[int, int, bytes]]) -> None:
        """Hands in the entries from `low` on that were read for a lagging voter."""
    def set_snapshot(self, snapshot: tuple[int, int, bytes]) -> None:
        """Notes a snapshot for voters that need what the log does not have any more."""
    def forget_before(self, index: int) -> None:
        """Notes that the log begins after this entry."""

# -------------------------------------------------------------------------------------------- quorum_ready.rs

@final
class QuorumReady:
    """What to do, in the order of the properties."""

    @property
    def number(self) -> int:
        """Rises with every ready."""
    @property
    def messages(self) -> list[tuple[int, bytes]]:
        """To be sent at once."""
    @property
    def snapshot(self) -> tuple[int, int, bytes] | None:
        """The log is to hold nothing but this."""
    @property
    def hard_state(self) -> tuple[int, int | None] | None:
        """(term, vote) to be persisted before the entries."""
    @property
    def entries(self) -> list[tuple[int, int, bytes]]:
        """To be persisted; where the log holds the first one's index already, it is cut before that."""
    @property
    def persisted_messages(self) -> list[tuple[int, bytes]]:
        """To be sent when all that is persisted."""
    @property
    def committed(self) -> list[tuple[int, int, bytes]]:
        """Committed since the last call."""

def build_record_batch(values: list[bytes], timestamp_ms: int) -> bytes:
    """A batch of records without keys, with base offset 0."""

def changes_voters(payload: bytes) -> bool:
    """Whether a batch changes who votes."""

def parse_metadata_batches(buffer: bytes) -> tuple[list[tuple[int, int, int, int, bool, tuple[bytes, ...]]], int]:
    """The whole batches at the front of a buffer, checked wholly, and the bytes that they take.

    Each is (base offset, last offset, leader epoch, timestamp, is control, values). Raises `MetadataLogError` when the
    first batch is not whole, or any is corrupt.
    """

# ------------------------------------------------------------------------------------------------ received.rs

@final
class Received:
    """Received records of one partition that wait for the program; its length is how many of them do."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def next_offset(self) -> int | None:
        """Offset of the next record; `None` when none is left."""
    def __len__(self) -> int: ...
    def take(self, most: int) -> list[Record]:
        """Hands out up to so many records: objects are made of these alone."""
    def format(self, layout: RecordFormat, most: int, max_bytes: int) -> FormattedRecords:
        """Hands out up to so many records as text, and no further one once the text has `max_bytes`; GIL released. The
        one that cannot be decoded is the last."""
    def put_back(self, count: int) -> None:
        """Has the last so many that were handed out be the next again."""

# -------------------------------------------------------------------------------------------------- record.rs

@final
class Record(Generic[_Key_co, _Value_co]):
    """One record as a program sees it."""

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
        """Of the partition when it was written; -1 where the format does not say."""
    @property
    def key(self) -> _Key_co | None:
        """Bytes or None, or what the consumer's `key_deserializer` made of them."""
    @property
    def value(self) -> _Value_co | None:
        """Bytes or None (a tombstone), or what the consumer's `value_deserializer` made of them."""
    @property
    def headers(self) -> list[tuple[str, bytes | None]]: ...
    def with_parts(self, key: _Key | None, value: _Value | None) -> Record[_Key, _Value]:
        """The same record with another key and value."""

# ------------------------------------------------------------------------------------------- record_format.rs

@final
class RecordFormat:
    """How records are written as text; see `pybroker.client.text`."""

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
        """`style` is text, json or nothing. `shown` names parts: timestamp, partition, offset, delivery, epoch,
        headers, key, value. `key`, `value` and `headers` are short names of Kafka's deserializers. Raises `ValueError`.
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
        """A line for each record, where the format asks for them."""
    @property
    def records(self) -> int:
        """How many, the one that failed among them."""
    @property
    def leader_epoch(self) -> int:
        """Of the last record; -1 where the format does not say."""
    @property
    def failure(self) -> tuple[int, str] | None:
        """Offset of the last record and what is wrong with it, where it could not be decoded."""

# -------------------------------------------------------------------------------------------------- quotas.rs

@final
class QuotaQuery:
    """A client whose quotas the data plane does not know; its requests wait until `set_client_quotas` says them."""

    @property
    def connection(self) -> int:
        """The connection's number."""
    @property
    def principal(self) -> tuple[str, str]:
        """Who the client is, as kind and name."""
    @property
    def client_id(self) -> str:
        """What it calls itself; empty where it says nothing."""

_QuotaLimit = tuple[float, str | None, str | None]

def set_quotas(
    data_plane: DataPlane, *, version: int, samples: int, sample_ms: int, remembered: int, forgotten_after_ms: int
) -> None:
    """Has clients' quotas counted, over so many samples; each client is asked for by a `QuotaQuery`. A call with
    another version has them asked for again, and changes nothing else; with 0 nobody has a quota.

    About as many clients are remembered as `remembered` says, and as many entities that share quotas, beyond those of
    open connections; who was not seen for `forgotten_after_ms` is forgotten."""

def set_client_quotas(
    data_plane: DataPlane,
    connection: int,
    version: int,
    *,
    produce: _QuotaLimit | None,
    fetch: _QuotaLimit | None,
    request: _QuotaLimit | None,
) -> None:
    """Says what binds the client of a connection, by the quotas of `version`, and goes on with the connection. Each is
    a limit a second, in bytes, or in percent of a thread's time for `request`, with the user and the client id that
    share it; None for all of them."""

def count_request_time(data_plane: DataPlane, connection: int, nanoseconds: int) -> int:
    """Counts the time that a control request took. Returns the `throttle_time_ms` of its answer, which is to be sent
    after this: nothing is read from the connection for so long."""

def mute(data_plane: DataPlane, connection: int, time_ms: int) -> None:
    """Reads nothing from a connection for so many milliseconds from now on, which the answer that is to be sent after
    this names. A mute that lasts longer goes on."""

# -------------------------------------------------------------------------------------------- record_table.rs

@final
class RecordTable:
    """The record types of a coordinator's topic, for coding records in bulk."""

    def __new__(
        cls, types: list[tuple[int, type, Schema, Schema, int]], check: Callable[[Any], object] | None = None
    ) -> RecordTable:
        """Types are (number, class of keys, its schema, schema of values, version in which values are written).

        `check` raises `MalformedMessage` for a value that is read and that no record has.
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
        """Makes batches of (key, value or None, version; -1: the type's), with base offset 0 and no producer.

        With a producer, by id and epoch, they belong to its transaction.

        A batch has at most `max_batch_bytes` before compression, or one record. Raises as `Schema.encode`, and
        `TypeError` for a key that the table does not have.
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
        """Reads the whole batches at the front of a buffer: (records as (key, value or None), the offset after them,
        the bytes that they take, records skipped because their type is not in the table, what is of transactions, what
        cannot be read).

        Control batches hold no records. What is of transactions has rows of (begin and end in the list of records,
        producer id, producer epoch, None); the end of one is between two records: begin and end are equal, and the last
        says whether it was committed.

        What cannot be read has rows of (the place that it would have in the list of records, first and last offset, the
        key where the value alone is malformed or None, the cause).

        Records of a batch decompress to at most `max_bytes`. `MalformedMessage` for what is no batch.
        """

# ---------------------------------------------------------------------------------------- recovery_progress.rs

@final
class RecoveryProgress:
    """How far recoveries have come: shared by the logs that are opened with it."""

    def __new__(cls) -> RecoveryProgress: ...
    @property
    def bytes(self) -> int:
        """Bytes of segments that were read and checked so far, in steps of a mebibyte."""
    def take_found(self) -> list[tuple[str, list[tuple[str, int, int, str]], list[str]]]:
        """What openings have found since the last call: the log's name, what is missing, what was made anew.

        Of what is missing: the cause's name, bytes taken out of the log, files that keep them, the sentence.
        """

# ------------------------------------------------------------------------------------------------ retention.rs

@final
class RemovedSegments:
    """Segments that are out of use, renamed to `.deleted`; their files wait to be removed."""

    @property
    def log_start_offset(self) -> int:
        """Where the log starts now."""
    @property
    def below_start(self) -> int:
        """How many lay wholly below the log start."""
    @property
    def over_size(self) -> int:
        """How many made the log larger than it may be."""
    @property
    def too_old(self) -> int:
        """How many had no record that is young enough."""
    @property
    def bytes(self) -> int:
        """The size of their records."""
    @property
    def files(self) -> list[str]:
        """Their files, as they are called now."""

def advance_log_start(partition: Partition, offset: int) -> RemovedSegments:
    """Moves the log start forward to `offset`, at most to the log end, and takes the segments that lie wholly below out
    of use; releases the GIL. `OSError` with its errno."""

def delete_old_segments(
    partition: Partition, *, retention_ms: int | None, retention_bytes: int | None, now_ms: int
) -> RemovedSegments:
    """Takes segments out of use that are below the log start, make the log larger than `retention_bytes`, or have no
    record younger than `retention_ms`; None is no limit. Only what is committed goes. Releases the GIL. `OSError`."""

# ----------------------------------------------------------------------------------------------------- role.rs

@final
class Role:
    """What this broker is to be to a partition. Each belongs to a leader epoch."""

    @staticmethod
    def leader(
        leader_epoch: int, *, partition_epoch: int, followers: Sequence[tuple[int, bool]], min_insync_replicas: int
    ) -> Role:
        """Takes appends. `followers` are the other replicas: broker id, and whether it is in sync. A newer
        `partition_epoch` decides about those that wait to be let in."""
    @staticmethod
    def follower(leader_epoch: int, *, leader: int) -> Role:
        """Takes no appends; fetches from the broker of id `leader`, where `DataPlane.set_fetch_sources` says."""
    @staticmethod
    def none(leader_epoch: int) -> Role:
        """Serves nobody: there is no leader, or this broker is none of the replicas."""

def become_roles(changes: Sequence[tuple[Partition, Role]], data_plane: DataPlane) -> list[OSError | ValueError | None]:
    """Changes the roles of many partitions. Requests that waited on the old ones are answered by `data_plane`. Within
    an epoch a leader may get other replicas, or other replicas in sync. Releases the GIL once.

    Gives the error of each, None where the role was changed; with an error the role is as it was. `ValueError`: the
    epoch is over, or has another leader. `OSError`: the log could not be made ready.
    """

# --------------------------------------------------------------------------------------------- replication.rs

@final
class ReplicationSettings:
    """How a broker replicates."""

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
        """`first_backoff_ms` is the first wait after a refusal; further ones are twice as long, up to `backoff_ms`.
        A connection is closed when the leader's system acknowledges nothing for `path_timeout_ms`.
        Rates are bytes a second of throttled replicas, 2**63 - 1 for no limit, seen over `throttle_samples`.
        Connections go through `tls`, and say by `credentials` who this broker is; None: not."""

@final
class ReplicaCaughtUp:
    """A follower has all that is committed of a partition whose leader is here, and is not in sync. It is reported
    once until a newer partition epoch, or `stop_joining`; meanwhile the high watermark waits for it."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
    @property
    def index(self) -> int:
        """The partition's index."""
    @property
    def leader_epoch(self) -> int:
        """The leader epoch that this is true of."""
    @property
    def partition_epoch(self) -> int:
        """The partition epoch that this is true of: a newer one ends the high watermark's wait for it."""
    @property
    def replica(self) -> int:
        """The follower's broker id."""
    @property
    def broker_epoch(self) -> int:
        """The epoch of its registration; -1 where it does not say."""

@final
class ReplicaDeletedRecords:
    """A follower's log starts later than before, of a partition whose leader is here, and somebody waits for that."""

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""
    @property
    def index(self) -> int:
        """The partition's index."""

def lagging_replicas(
    partitions: Sequence[Partition], data_plane: DataPlane, *, max_lag_ms: int, alive: list[int]
) -> list[tuple[int, int, list[int]]]:
    """Which in-sync replicas have not had all for longer than `max_lag_ms`: the place of the partition, its leader
    epoch, and their broker ids. Others that lag, or are not `alive`, hold nothing back any more. Releases the GIL."""

def stop_joining(partition: Partition, data_plane: DataPlane, replicas: list[int]) -> None:
    """Ends the wait for replicas that are not let into the in-sync ones."""

# --------------------------------------------------------------------------------------------- settlements.rs

@final
class Settlements:
    """What became of a producer's watched records. Does not keep the producer open."""

    def descriptor(self) -> int:
        """A descriptor that is readable when `take` may have something."""
    def take(
        self,
    ) -> list[tuple[list[Any], list[tuple[str, int, int, int]], list[Exception] | None]] | None:
        """What was decided since the last call, by batch: watchers, (topic, partition, offset, timestamp in ms) of each
        record, and where the batch was given up an error for each. `None` when nothing can follow. Makes the descriptor
        unreadable."""
    def rouse(self) -> None:
        """Makes the descriptor readable."""

# ------------------------------------------------------------------------------------------ simulated_disk.rs

@final
class SimulatedDisk:
    """A directory whose files are gone, whole or torn after a crash, as far as they were not synced. Only with the
    feature `simulation`."""

    def __new__(cls, root: str) -> SimulatedDisk:
        """Watches all changes below `root`, an empty directory."""
    @property
    def root(self) -> Path:
        """The directory."""
    def fill_up_after(self, writes: int | None) -> None:
        """Lets so many writes succeed, and the next ones fail for want of room; None for all."""
    def fail_syncs(self, fails: bool) -> None:
        """Lets every sync of a file fail, or none."""
    def replace_file(self, path: str, content: bytes) -> None:
        """Replaces a small file whole, durably, as `pybroker.storage.log_dirs.atomic_file` does."""
    def crash(self, how: Literal["process", "losing", "torn"], seed: int, root: str) -> None:
        """Writes below another root what a crash leaves now: all of it where a process ends, what was synced where a
        machine does, or some of the rest as well, by the seed."""

# ---------------------------------------------------------------------------------------------- simulation.rs

@final
class SimulatedDataPlane:
    """The hot path and the fetchers of a broker without sockets, threads and a clock of its own. Only with the feature
    `simulation`."""

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
        """Sets the time."""
    def set_broker_epoch(self, broker_epoch: int) -> None:
        """Sets the epoch that followers' requests carry."""
    def publish(self, table: TopicTable) -> None:
        """Swaps the topics."""
    def drain(
        self,
    ) -> list[ReplicaCaughtUp | ReplicaDeletedRecords | LogDirectoryFailed | SegmentRolled | Exhausted | LogLine]:
        """The events since the last call."""
    def become_role(self, partition: Partition, role: Role) -> None:
        """As `become_roles`; raises `ValueError` or `OSError`."""
    def next_request(self, leader: int) -> bytes | None:
        """The frame of the next Fetch for a leader, without its size."""
    def take_response(self, leader: int, frame: bytes) -> None:
        """Takes a leader's answer, from its correlation id on; `ValueError` for what is none."""
    def disconnected(self, leader: int) -> None:
        """The connection to a leader is lost."""
    def serve(self, frame: bytes) -> tuple[int | None, bytes | None]:
        """Works on a Produce or Fetch: the number under which it waits, or the answer; neither where the connection is
        closed, or no answer is wanted."""
    def responses(self) -> list[tuple[int, bytes | None]]:
        """The requests that waited and are satisfied, with their answers."""
    def expire(self, number: int) -> bytes | None:
        """The answer of a request that has waited long enough."""
    def lagging(self, partition: Partition, max_lag_ms: int, alive: list[int]) -> tuple[int, list[int]] | None:
        """As `lagging_replicas`, for one partition; None where this broker does not lead it."""
    def stop_joining(self, partition: Partition, replicas: list[int]) -> None:
        """As `stop_joining`."""
    def append(self, partition: Partition, batches: bytes) -> tuple[int, int]:
        """As `PartitionLog.append`."""
    def append_transactional(self, partition: Partition, batches: bytes, guard: int | None) -> tuple[int, int]:
        """As `PartitionLog.append_transactional`."""
    def begin_verification(
        self, partition: Partition, producer_id: int, producer_epoch: int, *, bumps_epoch: bool
    ) -> int:
        """As `PartitionLog.begin_verification`."""
    def append_marker(self, partition: Partition, marker: tuple[int, int, bool, int, int]) -> tuple[int, int]:
        """Appends the marker of a transaction that ends, as leader: producer id, epoch of the marker, whether it
        commits, epoch of the coordinator, `transaction.version`. (first offset, last offset). Raises as `PartitionLog`
        does."""
    def questions(self) -> list[tuple[int, tuple[str, int, int], int, list[tuple[str, int]]]]:
        """What coordinators of transactions are to be asked since the last call: number of the request that waits,
        (transactional id, producer id, producer epoch), version of the Produce, partitions."""
    def verified(self, number: int, responses: list[tuple[int, str | None] | None]) -> tuple[int | None, bytes | None]:
        """Goes on with such a request, as `serve` does. Of each partition why nothing may be appended, or None."""
    def has_completed(self, partition: Partition, leader_epoch: int, end_offset: int) -> bool:
        """As `PartitionLog.has_completed`, for a coordinator that was elected at a leader epoch."""
    def read(self, partition: Partition, offset: int, max_bytes: int) -> bytes:
        """As `PartitionLog.read`."""
    def cut(self, partition: Partition, offset: int) -> None:
        """A fault to plant: cuts a log where no epoch says so."""

# --------------------------------------------------------------------------------------------------- stamp.rs

@final
class KeyedStamps:
    """Stamped records with keys, for one producer and topic: how often each key comes, and the sequences so far."""

    def __new__(cls, keys: int, skew: float, seed: int) -> KeyedStamps:
        """`keys` different ones, their numbers in decimal digits; `skew` is the exponent of Zipf's law, 0 for alike."""
    def send(
        self,
        producer: Producer,
        topic: str,
        number: int,
        record_size: int,
        count: int,
        due: tuple[int, float] | None = None,
    ) -> None:
        """As `Producer.send_stamped` for the producer `number`; the keys lead to the partitions."""

@final
class LatencyHistogram:
    """Latencies from 1 us to ten minutes to three significant digits; merging two is exact. Thread-safe."""

    def __new__(cls, encoded: bytes | None = None) -> LatencyHistogram:
        """Nothing recorded, or what `encode` gave. Raises `ValueError` for bytes that are no such histogram."""
    def record(self, latency_us: int, count: int) -> None:
        """Notes that `count` records took `latency_us` each."""
    def merge(self, other: LatencyHistogram) -> None:
        """Adds all that another histogram holds."""
    @property
    def count(self) -> int:
        """How many records."""
    @property
    def max_us(self) -> int:
        """The largest latency; 0 where nothing is recorded."""
    @property
    def mean_us(self) -> float:
        """The mean latency; 0 where nothing is recorded."""
    def at_quantile(self, quantile: float) -> int:
        """The latency in microseconds that this part (0 to 1) of the records did not exceed."""
    def encode(self) -> bytes:
        """HdrHistogram's V2 encoding, compressed; other implementations of it read that."""

@final
class Tally:
    """Sums over acknowledged records; latency is from `send` to the acknowledgement."""

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
    """One partition of a topic: the replica here, if any, and who leads."""

    def __new__(
        cls, *, index: int, partition: Partition | None, offline: bool, leader: int, leader_epoch: int
    ) -> PartitionEntry:
        """`leader` -1: none. `offline`: there is a replica here, and its log directory failed."""

@final
class TopicEntry:
    """One topic with its partitions."""

    def __new__(cls, *, name: str, topic_id: bytes, internal: bool, partitions: list[PartitionEntry]) -> TopicEntry:
        """`topic_id` has 16 bytes. Clients may not produce to one that is `internal`."""

@final
class TopicTable:
    """An immutable snapshot of the topics, looked up by name and by id."""

    def __new__(cls, *, brokers: dict[str, list[tuple[int, str, int, str | None]]]) -> TopicTable:
        """A table without topics; `brokers` are (id, host, port, rack) by the listener that a client has come by, sent
        to clients that ask the wrong one."""
    def replace(self, *, upsert: list[TopicEntry], remove: list[str]) -> TopicTable:
        """A new table; topics that are not named are shared with this one."""
    def with_eligible(self, brokers: list[tuple[int, int]]) -> TopicTable:
        """The same table, by which the replicas of no other brokers may be in sync: the high watermark waits for none
        of theirs that is not. Before the first call all may be. `brokers` are (id, epoch of its registration): a
        follower's Fetch of an older epoch is not noted.
        """
    def __len__(self) -> int:
        """How many topics."""

# ------------------------------------------------------------------------------------ producer_transactions.rs

@final
class Transactions:
    """The engine's side of a transactional producer: whether records are taken, and what becomes of them. Asks nobody.

    Partitions are (topic, number).
    """

    def __new__(cls, producer: Producer) -> Transactions: ...
    def begin(self, producer_id: int, epoch: int, implicit: bool) -> None:
        """Takes records from now on, under this identity. Without `implicit`, no batch of a partition is sent before
        the partition was `added`. Every batch of the transaction before is decided."""
    def end(self) -> bool:
        """Takes no more records; whether a batch was sent since `begin`: without one no coordinator knows of it."""
    def forget(self) -> None:
        """The transaction has ended: what went wrong in it, and can be mended, is forgotten."""
    def drop_unsent(self) -> None:
        """Gives up what was never sent; what a broker may have seen is sent until its fate is known."""
    def fail(self, code: int, text: str, fatal: bool) -> None:
        """What waits fails with this error, and records are refused with it: until the next `begin`, or for good."""
    def failure(self) -> tuple[int, str, bool, bool] | None:
        """What went wrong first since `begin`: (error code or 0, text, whether it is fatal, whether sequence numbers
        are lost, so that the next transaction needs another epoch)."""
    def take_unadded(self) -> list[tuple[str, int]]:
        """The partitions to add that were not returned yet."""
    def added(self, partitions: list[tuple[str, int]]) -> None:
        """Has the batches of these partitions sent."""
    def descriptor(self) -> int:
        """A descriptor that is readable while `take_unadded` has something to return."""

# ---------------------------------------------------------------------------------------------- transactions.rs

@final
class AppendedMarkers:
    """What became of markers that were appended together."""

    @property
    def is_awaited(self) -> bool:
        """Whether an `AppendCompleted` with their ticket follows; otherwise `error_codes` says all."""
    def error_codes(self) -> list[int]:
        """Of each marker, why its transaction is not known to have ended in its partition, as a code of Kafka: 0 where
        it has, REQUEST_TIMED_OUT where that is not decided."""

def active_producers(partition: Partition) -> list[tuple[int, int, int, int, int, int]]:
    """The producers that a partition remembers, by id: (id, epoch, last sequence number, time of the last batch in ms,
    coordinator epoch of the last marker, first offset of the open transaction); -1 for what there is not."""

def append_markers(
    data_plane: DataPlane, transactions: Sequence[tuple[Partition, int, int, bool, int, int]], ticket: int
) -> AppendedMarkers:
    """Ends transactions in partitions that this broker leads: (partition, producer id, epoch of the marker, whether it
    commits, coordinator epoch, `transaction.version`). For all replicas in sync. Waits for no disk.
    Releases the GIL."""

def confirm_transaction(
    partitions: Sequence[Partition],
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    now_ms: int,
) -> None:
    """Says to partitions, in the name of a coordinator of transactions, that the producer's transaction is open and has
    them: its first batch, sent under that id, is appended without a verification (KIP-890), unless the transaction has
    ended before. Nothing comes of it where another broker leads, or the log knows of a later epoch of the producer or
    of a coordinator. Releases the GIL."""

def forget_producers(partition: Partition, now_ms: int) -> None:
    """Forgets the producers that were silent for longer than the log's settings say, and have no open transaction.
    Releases the GIL."""

def transaction_verified(
    data_plane: DataPlane, connection: int, request: int, responses: Sequence[tuple[int, str | None] | None]
) -> None:
    """Evaluates an unresolved request of a transaction again: of each partition of `UnresolvedRequest.transaction` why
    nothing may be appended to it, as a code of Kafka and words; None where it is part of the transaction."""

def verify_transactions(data_plane: DataPlane, verify: bool) -> None:
    """Says whether a transaction's coordinator is asked before a partition takes part in it, where the version of the
    Produce does not have the partition added. Before this is called it is."""

# -------------------------------------------------------------------------------------------------- verify.rs

@final
class VerifiedLog:
    """The result of a scan of a log."""

    @property
    def findings(self) -> list[tuple[str, str, str, str]]:
        """File name, severity (`damage`, `unreadable`, `note`), kind, text; at most 100.

        Kinds are `records`, `index`, `snapshot`, `leader-epochs` and `partition-metadata`.
        """
    @property
    def left_out(self) -> int:
        """Findings beyond those."""
    @property
    def segments(self) -> int:
        """Number of segments."""
    @property
    def bytes(self) -> int:
        """Bytes of the records' files."""
    @property
    def batches(self) -> int:
        """Number of valid batches."""
    @property
    def log_start_offset(self) -> int:
        """The first offset."""
    @property
    def log_end_offset(self) -> int:
        """The offset behind the last valid batch."""
    @property
    def set_aside(self) -> list[tuple[str, int]]:
        """Files that recoveries have set aside, and their bytes."""

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
    """Reads every file of a log and changes none; offsets of -1 are not known. Releases the GIL.

    Raises `OSError` when the directory cannot be read; a file that cannot be is a finding.
    """

def set_aside_files(directory: str) -> list[tuple[str, int]]:
    """Names and bytes of the files that recoveries have set aside in a log's directory; raises `OSError`."""
