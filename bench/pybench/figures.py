"""Figures: how they are computed from a round, their units, and how rounds are summarised.

A round is a plain mapping: the measurements of the load, and the cost of the broker (`broker_user_s`,
`broker_system_s`, `broker_rss_bytes`).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Round = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """One column of the report."""

    title: str
    unit: str
    of_round: Callable[[Round], float]
    digits: int = 3
    pooled: tuple[Callable[[Round], float], Callable[[Round], float]] | None = None
    """Cost and work are summed over all rounds before the division, because /proc has a resolution of 10 ms."""


def _raw(name: str) -> Callable[[Round], float]:
    return lambda r: r[name]


def _cost(
    title: str, unit: str, cost: Callable[[Round], float], work: Callable[[Round], float], digits: int = 3
) -> Figure:
    return Figure(title, unit, lambda r: cost(r) / work(r), digits, (cost, work))


def _million(r: Round) -> float:
    return r["records"] / 1e6


def _gigabyte(r: Round) -> float:
    return r["bytes"] / 1e9


def _broker_cpu(r: Round) -> float:
    return r["broker_user_s"] + r["broker_system_s"]


FIGURES: dict[str, Figure] = {
    "records_per_second": Figure("throughput", "M records/s", lambda r: r["records"] / r["seconds"] / 1e6),
    "mb_per_second": Figure("throughput", "MB/s", lambda r: r["bytes"] / r["seconds"] / 1e6, 0),
    "broker_user_s_per_mrec": _cost("broker user CPU", "s per M records", _raw("broker_user_s"), _million),
    "broker_system_s_per_mrec": _cost("broker system CPU", "s per M records", _raw("broker_system_s"), _million),
    "broker_cpu_s_per_mrec": _cost("broker CPU in all", "s per M records", _broker_cpu, _million),
    "broker_user_s_per_gb": _cost("broker user CPU", "s per GB", _raw("broker_user_s"), _gigabyte),
    "broker_system_s_per_gb": _cost("broker system CPU", "s per GB", _raw("broker_system_s"), _gigabyte),
    "broker_cpu_s_per_gb": _cost("broker CPU in all", "s per GB", _broker_cpu, _gigabyte),
    "broker_rss_mb": Figure("broker memory", "MiB", lambda r: r["broker_rss_bytes"] / 2**20, 0),
    "client_cpu_s_per_mrec": _cost(
        "client CPU", "s per M records", lambda r: r["client_user_s"] + r["client_system_s"], _million
    ),
    "client_cpu_s_per_gb": _cost(
        "client CPU", "s per GB", lambda r: r["client_user_s"] + r["client_system_s"], _gigabyte
    ),
    "application_cpu_s_per_mrec": _cost("application CPU", "s per M records", _raw("application_cpu_s"), _million),
    "application_peak_mb": Figure("largest memory", "MiB", lambda r: r["application_peak_bytes"] / 2**20, 0),
    "application_rss_mb": Figure("resident memory", "MiB", lambda r: r["application_rss_bytes"] / 2**20, 0),
    "application_pss_mb": Figure("proportional memory", "MiB", lambda r: r["application_pss_bytes"] / 2**20, 0),
    "connections_per_second": Figure("connections", "per s", lambda r: r["records"] / r["seconds"], 0),
    "broker_cpu_ms_per_connection": _cost("broker CPU", "ms per connection", _broker_cpu, lambda r: r["records"] / 1e3),
    "handshakes_per_second": Figure("handshakes", "per s", lambda r: r["records"] / r["seconds"], 0),
    "own_ns": Figure("a connection's own decisions", "ns each", _raw("own_ns"), 1),
    "drawn_ns": Figure("decisions drawn at random", "ns each", _raw("drawn_ns"), 1),
    "remembered_percent": Figure("remembered", "%", _raw("remembered_percent"), 1),
    "resumed_percent": Figure("resumed", "%", lambda r: r["resumed"] / r["records"] * 100, 0),
    "logins_per_second": Figure("logins", "per s", lambda r: r["records"] / r["seconds"], 0),
    "commits_per_second": Figure("commits", "per s", lambda r: r["records"] / r["seconds"], 0),
    "broker_cpu_us_per_commit": _cost("broker CPU", "us per commit", _broker_cpu, lambda r: r["records"] / 1e6, 1),
    "transactions_per_second": Figure("transactions", "per s", lambda r: r["transactions"] / r["seconds"], 0),
    "commit_p50_ms": Figure("commit p50", "ms", _raw("commit_p50_ms")),
    "commit_p99_ms": Figure("commit p99", "ms", _raw("commit_p99_ms")),
    "broker_cpu_us_per_transaction": _cost(
        "broker CPU", "us per transaction", _broker_cpu, lambda r: r["transactions"] / 1e6, 1
    ),
    "p50_ms": Figure("p50", "ms", _raw("p50_ms")),
    "micro_batch_ms": Figure("micro-batch", "ms", lambda r: r["seconds"] * 1e3, 0),
    "join_p50_ms": Figure("join to first record, p50", "ms", _raw("join_p50_ms")),
    "join_max_ms": Figure("join to first record, slowest", "ms", _raw("join_max_ms")),
    "rebalance_s": Figure("rebalance", "s", _raw("rebalance_s")),
    "loaded_s": Figure("start to loaded", "s", _raw("loaded_s")),
    "start_s": Figure("start to first answer", "s", _raw("start_s")),
    "led_s": Figure("start to leaders of all partitions", "s", _raw("led_s")),
    "stop_s": Figure("stop", "s", _raw("stop_s")),
    "longest_gap_s": Figure("longest time without an acknowledgement", "s", _raw("longest_gap_s")),
    "failed": Figure("records that failed", "", _raw("failed"), 0),
    "answers_again_s": Figure("until it is answered", "s", _raw("answers_again_s")),
    "acknowledged_s": Figure("start to an acknowledged record", "s", _raw("acknowledged_s")),
    "idle_cpu_percent": Figure("CPU of all nodes", "% of a core", _raw("idle_cpu_percent"), 2),
    "moved_gb_per_second": Figure("copied", "GB/s", lambda r: r["bytes_per_second"] / 1e9, 2),
    "cold_ms": Figure("first after a start", "ms", _raw("cold_ms"), 0),
    "warm_ms": Figure("later ones", "ms", _raw("warm_ms"), 0),
    "answered_ms": Figure("later ones until answered", "ms", _raw("answered_ms"), 0),
    "served_ms": Figure("later ones until all are served", "ms", _raw("served_ms"), 0),
    "idle_rss_mb": Figure("idle memory", "MiB", lambda r: r["idle_rss_bytes"] / 2**20, 0),
    "latency_p99_ms": Figure("latency p99", "ms", _raw("latency_p99_ms"), 0),
    "peak_rss_mb": Figure("largest memory", "MiB", lambda r: r["peak_rss_bytes"] / 2**20, 0),
    "load_s": Figure("start from a snapshot", "s", _raw("load_s")),
    "failover_s": Figure("a broker's death", "s", _raw("failover_s")),
    "create_s": Figure("1,000 partitions created", "s", _raw("create_s")),
    "one_change_ms": Figure("one partition changed", "ms", _raw("one_change_ms"), 1),
    "resident_mib": Figure("resident memory", "MiB", _raw("resident_mib"), 0),
    "peak_mib": Figure("largest memory", "MiB", _raw("peak_mib"), 0),
    "ready_s": Figure("start until it can be used", "s", _raw("ready_s")),
    "lookup_us": Figure("look-up", "µs", _raw("lookup_us")),
    "first_us": Figure("first look-up of a batch", "µs", _raw("first_us")),
    "pread_us": Figure("one bare pread of a header", "µs", _raw("pread_us")),
    "build_us": Figure("build", "µs per batch", _raw("build_us"), 1),
    "check_us": Figure("check", "µs per batch", _raw("check_us"), 1),
    "us_per_batch": Figure("append", "µs per batch", lambda r: r["seconds"] / r["bytes"] * 16 * 1024 * 1e6),
    "gb_per_second": Figure("throughput", "GB/s", lambda r: r["bytes"] / r["seconds"] / 1e9, 2),
    "open_s": Figure("open", "s", _raw("seconds")),
    "resident_kib_each": Figure("memory of each", "KiB", _raw("resident_kib_each"), 1),
    "wheel_mb": Figure("wheel", "MB", lambda r: r["wheel_bytes"] / 1e6, 2),
    "installed_mb": Figure("installed", "MB", lambda r: r["installed_bytes"] / 1e6, 1),
    "with_dependencies_mb": Figure("with dependencies", "MB", lambda r: r["with_dependencies_bytes"] / 1e6, 1),
    "import_client_ms": Figure("import of the client", "ms", _raw("import_client_ms"), 0),
    "import_broker_ms": Figure("import of the broker", "ms", _raw("import_broker_ms"), 0),
    "batches_per_sync": Figure("batches per sync", "", _raw("batches_per_sync"), 1),
    "p99_ms": Figure("p99", "ms", _raw("p99_ms")),
    "worst_max_ms": Figure("longest wait beside any API", "ms", _raw("worst_max_ms"), 1),
    "worst_p99_ms": Figure("largest p99 beside any API", "ms", _raw("worst_p99_ms"), 1),
    "newcomer_p99_ms": Figure("a newcomer's ApiVersions, p99", "ms", _raw("newcomer_p99_ms"), 1),
    "newcomer_max_ms": Figure("slowest", "ms", _raw("newcomer_max_ms"), 1),
    "heartbeat_p99_ms": Figure("Heartbeat, p99", "ms", _raw("heartbeat_p99_ms"), 1),
    "heartbeat_max_ms": Figure("slowest", "ms", _raw("heartbeat_max_ms"), 1),
    "late_p99_ms": Figure("sent after it was due, p99", "ms", _raw("late_p99_ms"), 2),
    **{
        f"{what}_{point}_ms": Figure(f"{said} {point}", "ms", _raw(f"{what}_{point}_ms"))
        for what, said in (
            ("arrived", "round trip"),
            ("acknowledged", "acknowledged"),
            ("sent", "sent after it was due"),
        )
        for point in ("p50", "p90", "p99", "p999", "max")
    },
}


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a figure over the counted rounds of one contestant."""

    middle: float
    """The median. For costs, the cost of all rounds divided by the work of all rounds."""
    low: float
    high: float


def summarise(name: str, rounds: Sequence[Round]) -> Summary:
    """Summarise one figure. Raises KeyError if the load does not measure it."""
    figure = FIGURES[name]
    values = [figure.of_round(r) for r in rounds]
    if figure.pooled is not None:
        cost, work = figure.pooled
        middle = sum(cost(r) for r in rounds) / sum(work(r) for r in rounds)
    else:
        middle = statistics.median(values)
    return Summary(middle, min(values), max(values))
