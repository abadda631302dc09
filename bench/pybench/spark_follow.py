"""Output of the Spark tools during and after a load: Kafka's lines for the total, and one for each client.

Knows the structure of the board and the result, not their source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pybench.waits import Waits
from pybroker.cli.perf import formats
from pybroker.cli.perf.producer_perf import QUANTILES, Window
from pybroker.cli.perf.progress import ProgressBar

if TYPE_CHECKING:
    from pybroker_spark.load import Board, Interval, Result, Standing, Total


class Follower:
    """Prints Kafka's window line for all producers and updates the progress bar. Called several times a second."""

    def __init__(self, role: str, bar: ProgressBar, reporting_interval_s: float, waits: Waits) -> None:
        self._role, self._bar, self._interval_s, self._waits = role, bar, reporting_interval_s, waits
        self._began: float | None = time.monotonic()
        """The time of the request for tasks. None once the tasks have started."""
        self._window = Window(0.0)
        self._taken = 0
        self._records = 0

    def __call__(self, board: Board, elapsed_s: float) -> None:
        """Show the progress of task starts, or process new intervals of the board."""
        if self._began is not None:
            if not elapsed_s:
                there = sum(client.state != "waiting" for client in board.clients)
                self._bar.wait_for("tasks to connect", there, len(board.clients))
                return
            self._waits.note("tasks", time.monotonic() - self._began)
            self._began = None
        for row in board.intervals[self._taken :]:
            if row.role == self._role:
                self._take(row)
        self._taken = len(board.intervals)
        self._bar.update(self._records)

    def _take(self, row: Interval) -> None:
        window = self._window
        if row.begin_s - window.start >= self._interval_s and window.records:
            # All clients have sent their rows for the previous window: they report at the same interval.
            self.print_window(row.begin_s)
            window = self._window
        window.records += row.records
        window.size += row.bytes
        window.latency_sum_us += row.latency_sum_us
        window.latency_max_us = max(window.latency_max_us, row.latency_max_us)
        self._records += row.records

    def print_window(self, now_s: float) -> None:
        """Print the window and start the next one."""
        if self._role == "producer":
            self._bar.report(self._window.line(now_s))
        self._window = Window(now_s)


def producer_line(total: Total, *, steady_state: bool = False) -> str:
    """Return Kafka's summary line."""
    p50, p95, p99, p999 = (total.latencies.at_quantile(quantile) // 1000 for quantile in QUANTILES)
    sum_ms, max_ms = total.latency_sum_us / 1000, total.latency_max_us / 1000
    return formats.producer_total(
        *(total.records, total.bytes, total.seconds * 1000, sum_ms, max_ms, (p50, p95, p99, p999)),
        steady_state=steady_state,
    )


def client_lines(result: Result, role: str) -> Iterator[str]:
    """Yield one line for each client of a role: its figures, and its end state if the client did not complete."""
    for standing in result.of_role(role):
        total = result.of_client(standing)
        line = producer_line(total) if role == "producer" else consumer_line(total)
        yield f"task {standing.task}{_name(result, standing)}: {line}{_disturbance(standing)}{_fate(standing)}"


def _name(result: Result, standing: Standing) -> str:
    return "" if len(result.clients) == result.plan.tasks else f", client {standing.client} ({standing.topic})"


def _disturbance(standing: Standing) -> str:
    """Return the client's retries and leader changes as text, empty if there were none."""
    met = standing.disturbance
    if met is None or not (met.retries or met.leader_changes):
        return ""
    changes = f"{met.leader_changes} leader change{'' if met.leader_changes == 1 else 's'}"
    if standing.role != "producer":
        return f" {changes}."
    return f" {changes}, {met.retries} records sent again, {met.gap_s:.2f} s without an acknowledgement at most."


def _fate(standing: Standing) -> str:
    if standing.state == "done":
        return f" First failure: {standing.reason}" if standing.reason else ""
    return f" {standing.state.upper()}: {standing.reason}"


def consumer_line(total: Total) -> str:
    """Return a summary line of consumed records in the format of the producer's."""
    rate, volume = formats.ratio(total.records, total.seconds), formats.ratio(total.bytes, total.seconds) / formats.MB
    line = f"{total.records} records read, {formats.fixed(rate, 6)} records/sec ({formats.fixed(volume, 2)} MB/sec)"
    if not total.latencies.count:
        return line + "."
    p50, p99, p999 = (total.latencies.at_quantile(quantile) / 1000 for quantile in (0.5, 0.99, 0.999))
    return f"{line}, {p50:.2f} ms 50th, {p99:.2f} ms 99th, {p999:.2f} ms 99.9th."
