"""Output files of the Spark tools: a JSON document, and Parquet files of intervals and acknowledged records.

An audit reads `acknowledged`: with `failed` 0 and `complete` true, a partition contains every sequence from 0 to
`acknowledged` - 1 of that producer's stamps. Prints nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pybroker
from pybroker.cli.perf.options import ToolError, write_json
from pybroker.cli.perf.producer_perf import QUANTILES, figures
from pybroker.client import Admin, ClientError
from pybroker.client.settings import AdminSettings

if TYPE_CHECKING:
    import pyarrow

    from pybroker_spark.load import Interval, Result, Standing, Total

_PATIENCE_MS = 5_000
"""Timeout of the version query, short in case the broker has ended."""


def write_files(result: Result, options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Write the requested files: `--parquet`, `--html`, `--json`."""
    document = build_document(result, options, settings)
    if options.parquet is not None:
        write_parquet(result, options.parquet)
    if options.html is not None:
        from pybench.load_html import write_html

        write_html(result, document, options.html)
    write_json(options.json, document)


def build_document(result: Result, options: argparse.Namespace, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON document: figures of each role and client, and acknowledged records by partition."""
    return {
        "tool": options.tool,
        "master": options.master,
        "tasks": result.plan.tasks,
        "run": result.plan.run,
        "started_at": result.started_at,
        "settings": settings,
        "waited_s": options.waits.seconds,
        "versions": {"spark": options.spark_version, **_versions(result)},
        "whole": result.is_whole(),
        "reason": result.reason,
        **_main(result),
        "roles": {role: _role(result, role) for role in _roles(result)},
        "clients": [_client(result, standing) for standing in result.clients],
        "acknowledged": [asdict(each) for each in result.acknowledged()],
        "intervals": [_interval(row) for row in result.intervals],
        "clock_differences_s": result.clock_differences_s,
    }


def _versions(result: Result) -> dict[str, str]:
    """Return the versions of the components other than Spark. For brokers, the feature levels of the cluster."""
    found = {"pybroker": pybroker.__version__, "python": platform.python_version()}
    limits = {"default.api.timeout.ms": _PATIENCE_MS, "request.timeout.ms": _PATIENCE_MS}
    client = result.plan.clients[0]
    given = {**AdminSettings.acting(client.properties), **limits}
    with contextlib.suppress(ClientError), Admin(client.bootstrap_servers, given) as admin:
        features = admin.describe_features()
        levels = ", ".join(f"{name} {feature.level}" for name, feature in sorted(features.items()) if feature.level)
        found["broker"] = levels or "of before metadata.version"
    return found


def _roles(result: Result) -> list[str]:
    return [role for role in ("producer", "consumer") if result.of_role(role)]


def _main(result: Result) -> dict[str, Any]:
    """Return the figures of the only role, or with both roles those of the consumers, as in the other tools."""
    return _role(result, _roles(result)[-1])


def total_figures(total: Total) -> dict[str, Any]:
    """Return the figures of a total, with the names in the documents of the other tools."""
    seconds = total.seconds or float("nan")
    return figures(total, [total.latencies.at_quantile(q) for q in QUANTILES], seconds)


def _role(result: Result, role: str) -> dict[str, Any]:
    return {
        **total_figures(result.total(role)),
        "steady_state": total_figures(result.steady(role)),
        "disturbance": asdict(result.disturbance(role)),
    }


def _client(result: Result, standing: Standing) -> dict[str, Any]:
    kept = ("client", "task", "role", "topic", "host", "state", "reason", "steady_s", "timed_out", "rebalance_s")
    met = None if standing.disturbance is None else asdict(standing.disturbance)
    figures_of = total_figures(result.of_client(standing))
    return {**{name: getattr(standing, name) for name in kept}, "disturbance": met, **figures_of}


def _interval(row: Interval) -> dict[str, Any]:
    """Return a row with percentiles in place of its histogram."""
    values: dict[str, Any] = {**asdict(row)}
    del values["histogram"]
    latencies = row.latencies()
    for quantile in QUANTILES:
        values[f"p{quantile * 100:g}_us"] = latencies.at_quantile(quantile) if latencies.count else None
    return values


def write_parquet(result: Result, directory: Path) -> None:
    """Create the directory and write `intervals.parquet` and `acknowledged.parquet`. Raises ToolError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        directory.mkdir(parents=True, exist_ok=True)
        pq.write_table(interval_table(result), directory / "intervals.parquet")
        rows = [asdict(each) for each in result.acknowledged()]
        pq.write_table(pa.Table.from_pylist(rows, schema=_acknowledged_schema()), directory / "acknowledged.parquet")
    except OSError as error:
        raise ToolError(f"--parquet {directory}: {error}") from None


def interval_table(result: Result) -> pyarrow.Table:
    """Return all intervals: seconds from the start, histograms in HdrHistogram's V2 encoding, and percentiles."""
    import pyarrow as pa

    columns: list[tuple[str, Any]] = [
        ("client", pa.int32()),
        ("task", pa.int32()),
        ("role", pa.string()),
        ("topic", pa.string()),
        ("phase", pa.string()),
        ("begin_s", pa.float64()),
        ("end_s", pa.float64()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("failed", pa.int64()),
        ("latency_sum_us", pa.int64()),
        ("latency_max_us", pa.int64()),
        *((f"p{quantile * 100:g}_us", pa.int64()) for quantile in QUANTILES),
        ("histogram", pa.binary()),
    ]
    rows = [{**_interval(row), "histogram": row.histogram} for row in result.intervals]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def _acknowledged_schema() -> pyarrow.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("producer", pa.uint64()),
            ("client", pa.int32()),
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("acknowledged", pa.int64()),
            ("failed", pa.int64()),
            ("complete", pa.bool_()),
        ]
    )
