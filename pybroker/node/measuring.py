"""Reads the metrics of a node from the counters of both planes, the metadata and the parts of the broker.

Owns the mapping from values to metrics. This module runs on the thread of the admin listener or of the export, not on
the loop. It reads immutable data (images, snapshots of the data plane) and copies of dictionaries, and changes nothing.
It sleeps after each slice of a long list, so the loop waits for the interpreter lock for at most one slice. Each part
registers its metrics where it is built.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pybroker import __version__
from pybroker.handlers.registry import api_names
from pybroker.metrics.client_use import of_clients
from pybroker.metrics.metric import Histogram, Sample
from pybroker.net.native import client_uses, partition_states, work_counters
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.listener_role import ListenerRole
from pybroker.storage.native import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pybroker.broker.broker_state import BrokerState
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.service import Controller
    from pybroker.controller.unclean_elections import UncleanElections
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.metadata.image import MetadataImage
    from pybroker.metrics.requests import RequestCounts
    from pybroker.net.native import DataPlane, PartitionStates, WorkCounters
    from pybroker.net.tls import TlsListeners
    from pybroker.replica.in_sync import InSyncReplicas
    from pybroker.replica.publisher import PartitionPublisher
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.storage.log_dirs.directories import Directories
    from pybroker.storage.maintenance import Maintenance
    from pybroker.storage.partitions import Partitions

_SLICE = 500
"""Number of partitions or topics between two pauses: less than a millisecond of work."""
_PAUSE_S = 0.0001
"""The shortest sleep in seconds: it only has to release the interpreter lock."""
_PHASES = ("requestqueuetime", "localtime", "remotetime", "throttletime", "responsesendtime", "totaltime")
_TOPIC_COUNTS = (
    "bytesin_bytes",
    "bytesout_bytes",
    "bytesrejected_bytes",
    "messagesin",
    "totalproducerequests",
    "failedproducerequests",
    "totalfetchrequests",
    "failedfetchrequests",
)
_DELAYED = ("Produce", "Fetch")
_FETCH = 1
_PARTITION_GAUGES = (("size_bytes", 3), ("numlogsegments", 4), ("logstartoffset", 5), ("logendoffset", 6))
"""Metrics of `kafka_log_log`, and their indices in a row of `PartitionStates`."""
_NANOSECONDS = 1e9


def pause() -> None:
    """Release the interpreter lock, so that other threads run."""
    time.sleep(_PAUSE_S)


class MeasuredMetadata(Protocol):
    """The source of a node's metadata."""

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""

    @property
    def publish_failures(self) -> int:
        """Number of times that a publisher failed to apply an image."""


Family = tuple[str, Iterable[Sample]]
MetricSource = Callable[[], Iterable[Family]]
"""A function that returns the metrics of a part. Called from the thread that reads them."""


class MetricSources:
    """The metrics of one run of a node: those of the data planes and of the registered parts."""

    def __init__(self, config: BrokerConfig, mutations: MutationQuotas) -> None:
        self._mutations = mutations
        self._is_broker = config.is_broker
        self._max_topics = config.metrics_topics_max
        self._max_clients = config.metrics_clients_max
        self._of_brokers: _MeasuredPlane | None = None
        self._of_controllers: _MeasuredPlane | None = None
        self._sources: list[MetricSource] = []
        self._names: dict[int, str] = {}

    def add(self, source: MetricSource) -> None:
        """Register the metrics of a part."""
        self._sources.append(source)

    def add_data_plane(self, data_plane: DataPlane, tls: TlsListeners, role: ListenerRole) -> None:
        """Register the data plane of the listeners of a role, and their certificates."""
        plane = _MeasuredPlane(data_plane, tls)
        if role is ListenerRole.BROKER:
            self._of_brokers = plane
        else:
            self._of_controllers = plane

    def families(self) -> Iterator[Family]:
        """Yield every metric with its samples.

        Request metrics of a node with the broker role cover its broker listeners only.
        """
        of_brokers, of_controllers = self._of_brokers, self._of_controllers
        works = {plane: work_counters(plane.data_plane) for plane in (of_brokers, of_controllers) if plane is not None}
        main = of_brokers if self._is_broker else of_controllers
        if main is not None:
            yield from self._of_requests(main.data_plane, works[main])
        if of_brokers is not None:
            yield from self._of_partitions(of_brokers.data_plane, works[of_brokers])
        yield from _of_listeners(works)
        yield from self._of_clients(of_brokers)
        for source in tuple(self._sources):
            yield from source()
        yield from _of_process()

    # ------------------------------------------------------------------------------------------------ data plane

    def _of_requests(self, data_plane: DataPlane, work: WorkCounters) -> Iterator[Family]:
        counted = [(self._name(api.api_key), api) for api in data_plane.counters().apis]
        prefix = "kafka_network_requestmetrics"
        yield f"{prefix}_requests", [Sample(api.requests, (name,)) for name, api in counted]
        yield f"{prefix}_requestbytes_bytes", [Sample(api.bytes_in, (name,)) for name, api in counted]
        yield f"{prefix}_responsebytes_bytes", [Sample(api.bytes_out, (name,)) for name, api in counted]
        yield f"{prefix}_inwork", [Sample(api.in_work, (name,)) for name, api in counted]
        yield (
            f"{prefix}_errors",
            [
                Sample(count, (name, ErrorCode(code).name))
                for name, api in counted
                for code, count in sorted(api.errors.items())
            ],
        )
        bounds = tuple(bound / 1e6 for bound in work.bounds_us)
        for phase, name in enumerate(_PHASES):
            samples = []
            for times in work.times:
                total_ns, cumulative = times.phases[phase]
                kind = self._name(times.api_key)
                if times.api_key == _FETCH:
                    kind = "FetchFollower" if times.of_followers else "FetchConsumer"
                samples.append(Sample(Histogram(bounds, tuple(cumulative), total_ns / _NANOSECONDS), (kind,)))
            yield f"{prefix}_{name}_seconds", samples
            pause()
        prefix = "kafka_server_delayedoperation"
        yield f"{prefix}purgatory_purgatorysize", _labelled(_DELAYED, work.waiting)
        yield f"{prefix}_expires", _labelled(_DELAYED, work.expired)
        seconds = [(number, _cpu_seconds(thread)) for number, thread in enumerate(work.system_threads)]
        yield (
            "kafka_network_processor_cpu_seconds",
            [Sample(spent, (str(number),)) for number, spent in seconds if spent is not None],
        )

    def _name(self, api_key: int) -> str:
        if not self._names:
            self._names = api_names()
        return self._names.get(api_key, str(api_key))

    def _of_clients(self, plane: _MeasuredPlane | None) -> Iterator[Family]:
        most = self._max_clients
        uses = None if plane is None else client_uses(plane.data_plane, most)
        pause()
        yield from of_clients(uses, self._mutations.uses(most, time.monotonic()))

    def _of_partitions(self, data_plane: DataPlane, work: WorkCounters) -> Iterator[Family]:
        states = partition_states(data_plane)
        prefix = "kafka_server_brokertopicmetrics"
        survey = _survey(states, self._max_topics)
        counted = [counts for counts in _sliced(states.topics) if counts[0] in survey.shown]
        for position, name in enumerate(_TOPIC_COUNTS):
            yield f"{prefix}_{name}", [Sample(work.topics[position])]
            yield f"{prefix}_topic_{name}", [Sample(counts[position], (topic,)) for topic, counts in counted]
        yield f"{prefix}_replicationbytesin_bytes", [Sample(work.replication_bytes_in)]
        yield f"{prefix}_replicationbytesout_bytes", [Sample(work.replication_bytes_out)]
        yield "pybroker_metrics_topics_omitted", [Sample(survey.topics - len(survey.shown))]
        prefix = "kafka_server_replicamanager"
        yield f"{prefix}_leadercount", [Sample(survey.leaders)]
        yield f"{prefix}_partitioncount", [Sample(len(states))]
        yield f"{prefix}_underreplicatedpartitions", [Sample(survey.under_replicated)]
        yield f"{prefix}_underminisrpartitioncount", [Sample(survey.under_minimum)]
        yield f"{prefix}_atminisrpartitioncount", [Sample(survey.at_minimum)]
        yield "kafka_log_logmanager_size_bytes", [Sample(survey.size)]
        for name, position in _PARTITION_GAUGES:
            yield f"kafka_log_log_{name}", _of_logs(states, position, survey.rows_shown)
        syncs, appends = data_plane.flush_counts
        yield "pybroker_log_group_flush_syncs", [Sample(syncs)]
        yield "pybroker_log_group_flush_appends", [Sample(appends)]


class _MeasuredPlane(msgspec.Struct, frozen=True, eq=False):
    data_plane: DataPlane
    tls: TlsListeners


def _of_listeners(works: Mapping[_MeasuredPlane, WorkCounters]) -> Iterator[Family]:
    found = [one for work in works.values() for one in work.listeners]
    prefix = "kafka_server_socket_server_metrics_connection"
    yield f"{prefix}_count", [Sample(opened, (name,)) for name, opened, *_ in found]
    yield f"{prefix}_creation", [Sample(accepted, (name,)) for name, _, accepted, *_ in found]
    yield f"{prefix}_close", [Sample(accepted - opened, (name,)) for name, opened, accepted, *_ in found]
    prefix = "kafka_server_socket_server_metrics_{}connection_accept_throttle_time_seconds"
    yield prefix.format(""), [Sample(waited_ms / 1000, (name,)) for name, *_, waited_ms, _ in found]
    yield prefix.format("ip_"), [Sample(waited_ms / 1000, (name,)) for name, *_, waited_ms in found]
    now = datetime.now(UTC)
    ends = [item for plane in works for item in plane.tls.expiries().items()]
    yield (
        "kafka_server_ssl_certificate_expiry_seconds",
        [Sample((until - now).total_seconds(), (name,)) for name, until in ends],
    )


def of_requests_here(counts: RequestCounts) -> Iterator[Family]:
    """Yield the number of requests served by the control plane, and of those that failed."""
    versions = counts.all()
    yield "pybroker_control_requests", [Sample(one.requests, (api, version)) for api, version, one in versions]
    yield "pybroker_control_request_failures", [Sample(one.failures, (api, version)) for api, version, one in versions]


def of_logs(partitions: Partitions, publisher: PartitionPublisher, directories: Directories) -> Iterator[Family]:
    """Yield the metrics of a broker's logs and log directories."""
    recovered = sum(partitions.recovered_bytes(directory.path) for directory in directories.logs)
    yield "pybroker_log_recovered_bytes", [Sample(recovered)]
    yield from _of_flushes()
    yield "kafka_server_replicamanager_offlinereplicacount", [Sample(partitions.lost_count())]
    offline = sum(directory.offline for directory in directories.logs)
    yield "kafka_log_logmanager_offlinelogdirectorycount", [Sample(offline)]
    left = [(str(directory), left) for directory, left in publisher.recoveries.left()]
    yield "kafka_log_logmanager_remaininglogstorecover", [Sample(it.logs, (path,)) for path, it in left]
    yield "pybroker_log_remaining_recovery_bytes", [Sample(it.bytes, (path,)) for path, it in left]


def of_in_sync(in_sync: InSyncReplicas) -> Iterator[Family]:
    """Yield the number of ISR shrinks, expansions and failed updates."""
    yield "kafka_server_replicamanager_isrshrinks", [Sample(in_sync.counts.shrinks)]
    yield "kafka_server_replicamanager_isrexpands", [Sample(in_sync.counts.expands)]
    yield "kafka_server_replicamanager_failedisrupdates", [Sample(in_sync.counts.failed)]


def of_coordinators(groups: GroupCoordinator, transactions: TransactionCoordinator) -> Iterator[Family]:
    """Yield the number of groups and of transactional ids in each state."""
    counts = sorted(groups.states().items())
    yield "kafka_coordinator_group_groupmetadatamanager_numgroups", [Sample(count, kind) for kind, count in counts]
    states = sorted(transactions.states().items())
    yield "kafka_coordinator_transaction_transactions", [Sample(count, (state,)) for state, count in states]


def of_state(state: BrokerState) -> Iterator[Family]:
    """Yield the broker state."""
    yield "kafka_server_kafkaserver_brokerstate", [Sample(int(state))]


def of_controller(controller: Controller, elections: UncleanElections) -> Iterator[Family]:
    """Yield the metrics of a controller: metadata, quorum and unclean elections."""
    yield from of_metadata(controller)
    yield from _of_quorum(controller)
    yield "kafka_controller_controllerstats_uncleanleaderelections", [Sample(elections.count)]


def _labelled(labels: Iterable[str], values: Iterable[int]) -> list[Sample]:
    return [Sample(value, (label,)) for label, value in zip(labels, values, strict=True)]


def _sliced(part: Callable[[int, int], list[Any]], end: int = sys.maxsize) -> Iterator[Any]:
    begin = 0
    while rows := part(begin, min(_SLICE, end - begin)):
        yield from rows
        begin += len(rows)
        pause()


class _Survey(msgspec.Struct, frozen=True):
    """The result of one pass over all replicas."""

    topics: int
    shown: frozenset[str]
    """The topics with series of their own: the first ones by name."""
    rows_shown: int
    """Number of replicas of these topics. Their rows are the first, since rows are sorted."""
    size: int
    leaders: int
    under_replicated: int
    under_minimum: int
    at_minimum: int


def _survey(states: PartitionStates, max_topics: int) -> _Survey:
    topics = rows_shown = size = leaders = under_replicated = under_minimum = at_minimum = 0
    shown, last = [], None
    for topic, _, leads, size_bytes, *_, replicas, in_sync, wanted in _sliced(states.rows):
        if topic != last:
            topics, last = topics + 1, topic
            if topics <= max_topics:
                shown.append(topic)
        rows_shown += topics <= max_topics
        size += size_bytes
        leaders += leads
        under_replicated += leads and in_sync < replicas
        under_minimum += leads and in_sync < wanted
        at_minimum += leads and in_sync == wanted
    return _Survey(topics, frozenset(shown), rows_shown, size, leaders, under_replicated, under_minimum, at_minimum)


def _of_logs(states: PartitionStates, position: int, end: int) -> Iterator[Sample]:
    """Yield the value at index `position` of the first `end` replicas' rows, labelled with topic and partition."""
    return (Sample(row[position], (row[0], str(row[1]))) for row in _sliced(states.rows, end))


def _cpu_seconds(thread: int) -> float | None:
    """Return the CPU time of a thread of this process in seconds, or None if the system does not report it."""
    try:
        text = Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.split()[0]) / _NANOSECONDS


def _of_flushes() -> Iterator[Family]:
    flushes, took_ns = Partition.flush_times()
    yield "kafka_log_logflushstats_flushes", [Sample(flushes)]
    yield "kafka_log_logflushstats_seconds", [Sample(took_ns / _NANOSECONDS)]


def of_cleaner(maintenance: Maintenance) -> Iterator[Family]:
    """Yield the metrics of the log cleaner; none while the cleaner does not run."""
    counts = maintenance.cleaner_counts
    if counts is None:
        return
    if counts.checked_ms is not None:
        since = max(0.0, time.time() - counts.checked_ms / 1000)
        yield "kafka_log_logcleanermanager_time_since_last_run_seconds", [Sample(since)]
    yield "pybroker_log_cleaner_due_logs", [Sample(counts.due)]
    yield "pybroker_log_cleaner_due_bytes", [Sample(counts.due_bytes)]
    yield "kafka_log_logcleanermanager_uncleanable_partitions_count", [Sample(counts.uncleanable)]
    yield "kafka_log_logcleanermanager_max_dirty_percent", [Sample(100 * counts.max_dirty_ratio)]
    yield "pybroker_log_cleaner_passes", [Sample(counts.passes)]
    yield "pybroker_log_cleaner_seconds", [Sample(counts.took_ms / 1000)]
    yield "pybroker_log_cleaner_read_bytes", [Sample(counts.bytes_read)]
    yield "pybroker_log_cleaner_written_bytes", [Sample(counts.bytes_written)]


def of_metadata(source: MeasuredMetadata) -> Iterator[Family]:
    """Yield the numbers of topics, partitions and brokers in the newest image."""
    image = source.image
    partitions = offline = imbalanced = 0
    seen = 0
    for topic in image.topics.by_name.values():
        for partition in topic.partitions.values():
            partitions += 1
            offline += partition.leader < 0
            imbalanced += partition.leader != partition.replicas[0]
            seen += 1
            if seen % _SLICE == 0:
                pause()
    brokers = image.cluster.brokers.values()
    fenced = sum(broker.fenced for broker in brokers)
    prefix = "kafka_controller_kafkacontroller"
    yield f"{prefix}_globaltopiccount", [Sample(len(image.topics.by_name))]
    yield f"{prefix}_globalpartitioncount", [Sample(partitions)]
    yield f"{prefix}_offlinepartitionscount", [Sample(offline)]
    yield f"{prefix}_preferredreplicaimbalancecount", [Sample(imbalanced)]
    yield f"{prefix}_fencedbrokercount", [Sample(fenced)]
    yield f"{prefix}_activebrokercount", [Sample(len(brokers) - fenced)]
    yield f"{prefix}_metadataerrorcount", [Sample(source.publish_failures)]
    yield f"{prefix}_lastappliedrecordoffset", [Sample(image.offset)]


def _of_quorum(controller: Controller) -> Iterator[Family]:
    yield "kafka_controller_kafkacontroller_activecontrollercount", [Sample(int(controller.is_leader))]
    prefix = "kafka_server_raft_metrics"
    yield f"{prefix}_current_leader", [Sample(controller.leader_id)]
    yield f"{prefix}_current_epoch", [Sample(controller.leader_epoch)]
    yield f"{prefix}_high_watermark", [Sample(controller.committed_offset)]
    yield f"{prefix}_log_end_offset", [Sample(controller.next_offset)]
    yield f"{prefix}_commit_latency_seconds", [Sample(controller.commit_times.histogram())]
    yield "kafka_controller_controllereventmanager_event_seconds", [Sample(controller.event_times.histogram())]


def _of_process() -> Iterator[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "pybroker_build_info", [Sample(1, (__version__,))]
    yield "process_cpu_seconds", [Sample(used.ru_utime + used.ru_stime)]
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        open_files = len(os.listdir("/proc/self/fd"))
        # The name may contain spaces. Field 22 is the start of the process in ticks since the system's start.
        ticks = int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
        booted = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text(encoding="ascii").splitlines()
            if line[:5] == "btime"
        )
    except (OSError, StopIteration):
        return
    yield "process_resident_memory_bytes", [Sample(pages * resource.getpagesize())]
    yield "process_open_fds", [Sample(open_files)]
    yield "process_start_time_seconds", [Sample(booted + ticks / os.sysconf("SC_CLK_TCK"))]
