"""Reading the metrics of a node: from the counters of both planes, the metadata and the parts of the broker.

Owns which value is which metric. Everything here runs on the thread of the admin listener or of the export, beside the
loop: it reads what is immutable (images, snapshots of the data plane) and copies of dictionaries, changes nothing, and
stands aside after every slice of a long list, so that the loop waits for it no longer than a slice takes. A part that
is not built yet has no metrics.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pybroker import __version__
from pybroker.controller.measured import MeasuredController
from pybroker.handlers.served import api_names
from pybroker.metrics.client_use import of_clients
from pybroker.metrics.metric import Histogram, Sample
from pybroker.net.native import client_uses, partition_states, work_counters
from pybroker.protocol.errors import ErrorCode
from pybroker.storage.native import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pybroker.broker.broker_state import BrokerState
    from pybroker.controller.service import Controller
    from pybroker.net.native import DataPlane, PartitionStates, WorkCounters
    from pybroker.node.broker_part import BrokerPart
    from pybroker.node.controller_access import MetadataSource
    from pybroker.node.controller_part import ControllerPart
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.storage.cleaner import CleanerCounts

    Family = tuple[str, Iterable[Sample]]

_SLICE = 500
"""Partitions or topics between two pauses: less than a millisecond's work."""
_PAUSE_S = 0.0001
"""As short as a sleep can be; what counts is that it gives the interpreter lock away."""
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
"""Metrics of `kafka_log_log`, and where a row of `PartitionStates` has them."""
_NANOSECONDS = 1e9


def pause() -> None:
    """Let other threads run."""
    time.sleep(_PAUSE_S)


class Measuring:
    """The metrics of one run of a node."""

    def __init__(
        self,
        broker: BrokerPart | None,
        controller: ControllerPart | None,
        *,
        state: Callable[[], BrokerState],
        max_topics: int,
        max_clients: int,
    ) -> None:
        """`max_topics` and `max_clients` are how many topics, and users or clients, have series of their own."""
        self._broker = broker
        self._controller = controller
        self._state = state
        self._max_topics = max_topics
        self._max_clients = max_clients
        self._names: dict[int, str] = {}

    def families(self) -> Iterator[Family]:
        """Yield every metric that there is now, with its samples."""
        broker, controller = self._broker, self._controller
        parts = [part for part in (broker, controller) if part is not None]
        works = [(part, work_counters(part.data_plane)) for part in parts if hasattr(part, "data_plane")]
        if works and works[0][0] is parts[0]:
            yield from self._of_requests(parts[0].data_plane, works[0][1])
        if broker is not None:
            yield from self._of_broker(broker, dict(works).get(broker))
        yield from _of_listeners(parts, [work for _, work in works])
        yield from self._of_clients(broker, parts[0].mutations)
        source = getattr(broker, "source", None)
        if controller is not None and controller.is_open:
            yield from _of_metadata(controller.controller)
            yield from _of_quorum(controller.controller)
            elections = controller.unclean_elections.count
            yield "kafka_controller_controllerstats_uncleanleaderelections", [Sample(elections)]
        elif controller is None and source is not None:
            yield from _of_metadata(source)
        yield "kafka_server_kafkaserver_brokerstate", [Sample(int(self._state()))]
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

    # ---------------------------------------------------------------------------------------------------- broker

    def _of_broker(self, broker: BrokerPart, work: WorkCounters | None) -> Iterator[Family]:
        pipeline = getattr(broker, "pipeline", None)
        if pipeline is not None:
            versions = pipeline.counts.all()
            yield "pybroker_control_requests", [Sample(counts.requests, (api, of)) for api, of, counts in versions]
            yield (
                "pybroker_control_request_failures",
                [Sample(counts.failures, (api, of)) for api, of, counts in versions],
            )
        if work is not None:
            yield from self._of_partitions(broker.data_plane, work)
        in_sync = getattr(broker, "in_sync", None)
        if in_sync is not None:
            yield "kafka_server_replicamanager_isrshrinks", [Sample(in_sync.counts.shrinks)]
            yield "kafka_server_replicamanager_isrexpands", [Sample(in_sync.counts.expands)]
            yield "kafka_server_replicamanager_failedisrupdates", [Sample(in_sync.counts.failed)]
        partitions = getattr(broker, "partitions", None)
        if partitions is not None:
            recovered = sum(partitions.recovered_bytes(directory.path) for directory in broker.log_directories)
            yield "pybroker_log_recovered_bytes", [Sample(recovered)]
            yield from _of_flushes()
            yield "kafka_server_replicamanager_offlinereplicacount", [Sample(partitions.lost_count())]
            offline = sum(directory.offline for directory in broker.log_directories)
            yield "kafka_log_logmanager_offlinelogdirectorycount", [Sample(offline)]
        publisher = getattr(broker, "publisher", None)
        if publisher is not None:
            left = [(str(directory), left) for directory, left in publisher.recoveries.left()]
            yield "kafka_log_logmanager_remaininglogstorecover", [Sample(it.logs, (path,)) for path, it in left]
            yield "pybroker_log_remaining_recovery_bytes", [Sample(it.bytes, (path,)) for path, it in left]
        upkeep = getattr(broker, "upkeep", None)
        cleaner = None if upkeep is None else upkeep.cleaner_counts
        if cleaner is not None:
            yield from _of_cleaner(cleaner)
        groups: Any = getattr(broker, "groups", None)
        if groups is not None:
            counts = sorted(groups.states().items())
            yield "kafka_coordinator_group_groupmetadatamanager_numgroups", [Sample(n, kind) for kind, n in counts]
        transactions: Any = getattr(broker, "transactions", None)
        if transactions is not None:
            states = sorted(transactions.states().items())
            yield "kafka_coordinator_transaction_transactions", [Sample(count, (state,)) for state, count in states]

    def _of_clients(self, broker: BrokerPart | None, mutations: MutationQuotas) -> Iterator[Family]:
        most = self._max_clients
        uses = client_uses(broker.data_plane, most) if broker is not None and hasattr(broker, "data_plane") else None
        pause()
        yield from of_clients(uses, mutations.uses(most, time.monotonic()))

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


def _of_listeners(parts: Sequence[BrokerPart | ControllerPart], works: Iterable[WorkCounters]) -> Iterator[Family]:
    found = [one for work in works for one in work.listeners]
    prefix = "kafka_server_socket_server_metrics_connection"
    yield f"{prefix}_count", [Sample(opened, (name,)) for name, opened, *_ in found]
    yield f"{prefix}_creation", [Sample(accepted, (name,)) for name, _, accepted, *_ in found]
    yield f"{prefix}_close", [Sample(accepted - opened, (name,)) for name, opened, accepted, *_ in found]
    prefix = "kafka_server_socket_server_metrics_{}connection_accept_throttle_time_seconds"
    yield prefix.format(""), [Sample(waited_ms / 1000, (name,)) for name, *_, waited_ms, _ in found]
    yield prefix.format("ip_"), [Sample(waited_ms / 1000, (name,)) for name, *_, waited_ms in found]
    now = datetime.now(UTC)
    ends = [item for part in parts if hasattr(part, "tls") for item in part.tls.expiries().items()]
    yield (
        "kafka_server_ssl_certificate_expiry_seconds",
        [Sample((until - now).total_seconds(), (name,)) for name, until in ends],
    )


def _labelled(labels: Iterable[str], values: Iterable[int]) -> list[Sample]:
    return [Sample(value, (label,)) for label, value in zip(labels, values, strict=True)]


def _sliced(part: Callable[[int, int], list[Any]], end: int = sys.maxsize) -> Iterator[Any]:
    begin = 0
    while rows := part(begin, min(_SLICE, end - begin)):
        yield from rows
        begin += len(rows)
        pause()


class _Survey(msgspec.Struct, frozen=True):
    """What one look at all replicas finds."""

    topics: int
    shown: frozenset[str]
    """The topics with series of their own: the first by name."""
    rows_shown: int
    """How many replicas these have, which are the first, as rows are sorted."""
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
    """Yield one of the numbers of the first replicas."""
    return (Sample(row[position], (row[0], str(row[1]))) for row in _sliced(states.rows, end))


def _cpu_seconds(thread: int) -> float | None:
    """Return the CPU time of a thread of this process; None where the system does not say."""
    try:
        text = Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii")
    except OSError:
        return None
    return int(text.split()[0]) / _NANOSECONDS


def _of_flushes() -> Iterator[Family]:
    flushes, took_ns = Partition.flush_times()
    yield "kafka_log_logflushstats_flushes", [Sample(flushes)]
    yield "kafka_log_logflushstats_seconds", [Sample(took_ns / _NANOSECONDS)]


def _of_cleaner(counts: CleanerCounts) -> Iterator[Family]:
    if counts.looked_ms is not None:
        since = max(0.0, time.time() - counts.looked_ms / 1000)
        yield "kafka_log_logcleanermanager_time_since_last_run_seconds", [Sample(since)]
    yield "pybroker_log_cleaner_due_logs", [Sample(counts.due)]
    yield "pybroker_log_cleaner_due_bytes", [Sample(counts.due_bytes)]
    yield "kafka_log_logcleanermanager_uncleanable_partitions_count", [Sample(counts.uncleanable)]
    yield "kafka_log_logcleanermanager_max_dirty_percent", [Sample(100 * counts.max_dirty_ratio)]
    yield "pybroker_log_cleaner_passes", [Sample(counts.passes)]
    yield "pybroker_log_cleaner_seconds", [Sample(counts.took_ms / 1000)]
    yield "pybroker_log_cleaner_read_bytes", [Sample(counts.bytes_read)]
    yield "pybroker_log_cleaner_written_bytes", [Sample(counts.bytes_written)]


def _of_metadata(source: MetadataSource) -> Iterator[Family]:
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
    if isinstance(controller, MeasuredController):
        yield f"{prefix}_commit_latency_seconds", [Sample(controller.commit_times.histogram())]
        events = controller.event_times.histogram()
        yield "kafka_controller_controllereventmanager_event_seconds", [Sample(events)]


def _of_process() -> Iterator[Family]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield "pybroker_build_info", [Sample(1, (__version__,))]
    yield "process_cpu_seconds", [Sample(used.ru_utime + used.ru_stime)]
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        open_files = len(os.listdir("/proc/self/fd"))
        # Behind the name, which may hold spaces, the process's start is field 22 in ticks since the system's.
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
