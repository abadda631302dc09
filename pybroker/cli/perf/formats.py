"""The lines that Kafka's performance tools print, to the letter (Apache Kafka 4.3.1).

Pure functions of numbers; MB is 1024 squared. Must not know clocks, or clients beyond their numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

from pybroker.client import MetricValue

MB = 1024 * 1024

CONSUMER_HEADER = (
    "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
CONSUMER_DETAILED_HEADER = (
    "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
    "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)


def metric_lines(values: Iterable[MetricValue]) -> list[str]:
    """Return the lines of Kafka's `ToolsUtils.printMetrics`, after an empty line; none without metrics."""
    rows = sorted((f"{one.group}:{one.name}:{_java_map(one.tags)}", one.value) for one in values)
    if not rows:
        return []
    width = max(len(name) for name, _ in rows)
    return ["", f"{'Metric Name':<{width}}   Value", *(f"{name:<{width}} : {_java_3f(value)}" for name, value in rows)]


def _java_map(tags: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}={value}" for name, value in tags.items()) + "}"


def _java_3f(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else str(value).replace("inf", "Infinity").replace("nan", "NaN")


def ratio(amount: float, of: float) -> float:
    """Return a quotient of Java doubles: 0 / 0 is NaN, another number / 0 is infinite."""
    if of:
        return amount / of
    return math.nan if amount == 0 else math.copysign(math.inf, amount)


def fixed(value: float, digits: int) -> str:
    """Format as `%.<digits>f` of Java's `String.format`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


def producer_window(records: int, size: int, elapsed_ms: float, latency_sum_ms: float, latency_max_ms: float) -> str:
    """Return the line of a reporting interval."""
    rate = ratio(1000.0 * records, elapsed_ms)
    volume = ratio(1000.0 * size, elapsed_ms) / MB
    return (
        f"{records} records sent, {fixed(rate, 1)} records/sec ({fixed(volume, 2)} MB/sec), "
        f"{fixed(ratio(latency_sum_ms, records), 1)} ms avg latency, {fixed(latency_max_ms, 1)} ms max latency."
    )


def producer_total(
    records: int,
    size: int,
    elapsed_ms: float,
    latency_sum_ms: float,
    latency_max_ms: float,
    percentiles_ms: tuple[int, int, int, int],
    *,
    steady_state: bool = False,
) -> str:
    """Return the summary; `percentiles_ms` are the 50th, 95th, 99th and 99.9th."""
    rate = ratio(1000.0 * records, elapsed_ms)
    volume = ratio(1000.0 * size, elapsed_ms) / MB
    p50, p95, p99, p999 = percentiles_ms
    return (
        f"{records}{' steady state' if steady_state else ''} records sent, {fixed(rate, 6)} records/sec "
        f"({fixed(volume, 2)} MB/sec), {fixed(ratio(latency_sum_ms, records), 2)} ms avg latency, "
        f"{fixed(latency_max_ms, 2)} ms max latency, {p50} ms 50th, {p95} ms 95th, {p99} ms 99th, {p999} ms 99.9th."
    )


def consumer_total(start: str, end: str, size: int, records: int, elapsed_ms: int, rebalance_ms: int) -> str:
    """Return one row under `CONSUMER_HEADER`."""
    volume, fetch_ms = size / MB, elapsed_ms - rebalance_ms
    numbers = (
        fixed(volume, 4),
        fixed(ratio(volume, elapsed_ms / 1000), 4),
        str(records),
        fixed(ratio(records, elapsed_ms / 1000), 4),
        str(rebalance_ms),
        str(fetch_ms),
        fixed(ratio(volume, fetch_ms / 1000), 4),
        fixed(ratio(records, fetch_ms / 1000), 4),
    )
    return ", ".join((start, end, *numbers))


def consumer_interval(
    time: str, size: int, records: int, new_size: int, new_records: int, elapsed_ms: int, rebalance_ms: int
) -> str:
    """Return one row under `CONSUMER_DETAILED_HEADER`: totals, and rates since the last row."""
    new_volume, fetch_ms = new_size / MB, elapsed_ms - rebalance_ms
    numbers = (
        "0",
        fixed(size / MB, 4),
        fixed(1000.0 * ratio(new_volume, elapsed_ms), 4),
        str(records),
        fixed(ratio(new_records, elapsed_ms) * 1000.0, 4),
        str(rebalance_ms),
        str(fetch_ms),
        fixed(1000.0 * ratio(new_volume, fetch_ms), 4),
        fixed(1000.0 * ratio(new_records, fetch_ms), 4),
    )
    return ", ".join((time, *numbers))


def consumer_timeout(timeout_ms: int, what: str = "records") -> str:
    """Return the message about a timeout without records; `what` is the word in the option with the number."""
    return (
        f"WARNING: Exiting before consuming the expected number of {what}: timeout ({timeout_ms} ms) exceeded. "
        "You can use the --timeout option to increase the timeout."
    )


_DATE_PARTS: dict[str, Callable[[datetime, int], str]] = {
    "y": lambda t, n: f"{t.year % 100:02d}" if n == 2 else f"{t.year:0{n}d}",
    "M": lambda t, n: t.strftime("%B" if n > 3 else "%b") if n > 2 else f"{t.month:0{n}d}",
    "d": lambda t, n: f"{t.day:0{n}d}",
    "H": lambda t, n: f"{t.hour:0{n}d}",
    "h": lambda t, n: f"{(t.hour + 11) % 12 + 1:0{n}d}",
    "m": lambda t, n: f"{t.minute:0{n}d}",
    "s": lambda t, n: f"{t.second:0{n}d}",
    "S": lambda t, n: f"{t.microsecond // 1000:0{n}d}",
    "D": lambda t, n: f"{t.timetuple().tm_yday:0{n}d}",
    "E": lambda t, n: t.strftime("%A" if n > 3 else "%a"),
    "a": lambda t, _: "AM" if t.hour < 12 else "PM",
    "Z": lambda t, _: t.astimezone().strftime("%z"),
    "z": lambda t, _: t.astimezone().strftime("%Z"),
}


def java_date(pattern: str, moment: datetime) -> str:
    """Format a time with a pattern of `java.text.SimpleDateFormat`.

    Raises ValueError for an unsupported letter and for a quote that is not closed.
    """

    def part(match: re.Match[str]) -> str:
        text = match[0]
        if text == "'":
            raise ValueError(f"--date-format {pattern}: a quote is not closed; '' stands for a quote itself")
        if text.startswith("'"):
            return "'" if text == "''" else text[1:-1].replace("''", "'")
        if text[0] not in _DATE_PARTS:
            known = "".join(_DATE_PARTS)
            raise ValueError(
                f"--date-format {pattern}: the letter {text[0]!r} is not served; known are {known}, and text in quotes"
            )
        return _DATE_PARTS[text[0]](moment, len(text))

    return re.sub(r"'(?:[^']|'')*'|'|([A-Za-z])\1*", part, pattern)
