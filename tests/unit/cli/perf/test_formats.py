"""The tools' lines are Kafka's, to the letter: against the format strings in Kafka's own jar."""

from __future__ import annotations

import math
import re
import struct
import zipfile
from datetime import datetime
from functools import cache

import pytest

from pybench.peers import java
from pybroker.cli.perf import formats
from pybroker.client import MetricValue
from tests.support import programs

pytestmark = pytest.mark.java


@cache
def strings_of(class_name: str) -> frozenset[str]:
    """The text constants of a class in Kafka's tools jar."""
    jar = java.fetch_jars() / f"kafka-tools-{java.KAFKA_VERSION}.jar"
    with zipfile.ZipFile(jar) as archive:
        raw = archive.read(f"org/apache/kafka/tools/{class_name}.class")
    (count,) = struct.unpack_from(">H", raw, 8)
    widths = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    found, at, index = set(), 10, 1
    while index < count:
        tag = raw[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", raw, at + 1)
            found.add(raw[at + 3 : at + 3 + length].decode("utf-8", "replace"))
            at += 3 + length
        else:
            at += 1 + widths[tag]
            index += tag in (5, 6)
        index += 1
    return frozenset(found)


@pytest.fixture(autouse=True)
def _jars() -> None:
    programs.kafka_tools()


def java_format(pattern: str, *values: object) -> str:
    """What `String.format` makes of a pattern without line end; `%n` ends the line."""
    return pattern.removesuffix("%n") % values


WINDOW = "%d records sent, %.1f records/sec (%.2f MB/sec), %.1f ms avg latency, %.1f ms max latency.%n"
TOTAL = (
    "%d%s records sent, %f records/sec (%.2f MB/sec), %.2f ms avg latency, %.2f ms max latency, "
    "%d ms 50th, %d ms 95th, %d ms 99th, %d ms 99.9th.%n"
)
ROW = "%s, %s, %.4f, %.4f, %d, %.4f, %d, %d, %.4f, %.4f%n"
TIMEOUT = (
    "WARNING: Exiting before consuming the expected number of records: timeout (%d ms) exceeded. "
    "You can use the --timeout option to increase the timeout.%n"
)


def test_the_producers_window_is_kafkas() -> None:
    assert WINDOW in strings_of("ProducerPerformance$Stats")
    line = formats.producer_window(25_000, 2_500_000, 5_000, 75_000, 12)
    assert line == java_format(WINDOW, 25_000, 5_000.0, 500_000 / 1024**2, 3.0, 12.0)


@pytest.mark.parametrize("steady", [False, True])
def test_the_producers_summary_is_kafkas(steady: bool) -> None:
    strings = strings_of("ProducerPerformance$Stats")
    assert {TOTAL, " steady state", "In steady state."} <= strings
    line = formats.producer_total(1000, 100_000, 250, 3_500, 9, (3, 5, 7, 9), steady_state=steady)
    extra = " steady state" if steady else ""
    assert line == java_format(TOTAL, 1000, extra, 4000.0, 400_000 / 1024**2, 3.5, 9.0, 3, 5, 7, 9)


def test_the_consumers_row_and_headers_are_kafkas() -> None:
    strings = strings_of("ConsumerPerformance")
    assert ROW in strings
    row = formats.consumer_total("a", "b", 2 * 1024**2, 1000, 500, 100)
    assert row == java_format(ROW, "a", "b", 2.0, 4.0, 1000, 2000.0, 100, 400, 5.0, 2500.0)
    extra = ", rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    for header, start in (
        (formats.CONSUMER_HEADER, "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec"),
        (
            formats.CONSUMER_DETAILED_HEADER,
            "time, threadId, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec",
        ),
    ):
        assert f"{start}%s%n" in strings
        assert header == start + extra


def test_the_consumers_detailed_row_is_kafkas() -> None:
    assert {"%s, %d, %.4f, %.4f, %d, %.4f", ", %d, %d, %.4f, %.4f"} <= strings_of("ConsumerPerformance")
    row = formats.consumer_interval("t", 2 * 1024**2, 2000, 1024**2, 1000, 500, 100)
    assert row == "t, 0, 2.0000, 2.0000, 2000, 2000.0000, 100, 400, 2.5000, 2500.0000"


def test_the_consumers_warning_is_kafkas() -> None:
    assert TIMEOUT in strings_of("ConsumerPerformance")
    assert formats.consumer_timeout(10_000) == java_format(TIMEOUT, 10_000)
    assert "number of messages:" in formats.consumer_timeout(10_000, "messages")


def test_nothing_in_no_time_is_what_java_prints() -> None:
    assert (formats.fixed(formats.ratio(0, 0), 4), formats.fixed(formats.ratio(1, 0), 4)) == ("NaN", "Infinity")
    assert formats.fixed(-math.inf, 1) == "-Infinity"


def test_dates_follow_simple_date_format() -> None:
    moment = datetime(2026, 11, 21, 15, 4, 5, 67_000)
    assert formats.java_date("yyyy-MM-dd HH:mm:ss:SSS", moment) == "2026-11-21 15:04:05:067"
    assert formats.java_date("d/M/yy h:mm a 'o''clock' ''", moment) == "21/11/26 3:04 PM o'clock '"
    with pytest.raises(ValueError, match="--date-format QQ: the letter 'Q' is not served"):
        formats.java_date("QQ", moment)
    for pattern in ("'", "yyyy 'x", "'a''b", "'''"):
        with pytest.raises(ValueError, match="a quote is not closed"):
            formats.java_date(pattern, moment)


def shape(text: str) -> list[str]:
    """Output with every number replaced, line by line; times of day are numbers too."""
    return [re.sub(r"\d+(\.(\d+))?", lambda m: f"#.{len(m[2])}" if m[2] else "#", line) for line in text.splitlines()]


def test_numbers_keep_their_decimals_in_a_shape() -> None:
    assert shape("1 a 2.50\n") == ["# a #.2"]


def test_metrics_are_printed_as_by_kafkas_tool() -> None:
    values = [
        MetricValue("g", "name", {"client-id": "c", "topic": "t"}, 1.5),
        MetricValue("g", "a", {}, math.nan),
    ]
    assert formats.metric_lines(values) == [
        "",
        "Metric Name                     Value",
        "g:a:{}                        : NaN",
        "g:name:{client-id=c, topic=t} : 1.500",
    ]
    assert formats.metric_lines([]) == []
