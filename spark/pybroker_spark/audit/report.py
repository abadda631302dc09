"""The result of an audit by partition: a table for people, JSON for programs, and an exit status.

Owns the classification. A record is lost if its sequence is missing below the greatest one read, or below the number
that its producer reports as acknowledged. It is duplicated if its sequence occurs again, and reordered if its first
occurrence follows a greater sequence of its producer and partition. Must not know Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pybroker_spark.audit import intervals
from pybroker_spark.audit.expected import Expected
from pybroker_spark.audit.latencies import Latencies
from pybroker_spark.audit.sequences import Sequences
from pybroker_spark.audit.tally import Tally

SHOWN: Final = 10
"""Maximum number of lost ranges that are listed for each producer."""
QUANTILES: Final = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Finding:
    """The counts of one producer in one partition."""

    topic: str
    partition: int
    producer: int
    records: int
    lost: int
    duplicated: int
    reordered: int
    given_up: int
    """Missing sequences, up to the number of failed records of the producer."""
    unacknowledged: int
    """Records beyond those that the producer reported, because the producer was lost before it could report them."""
    lost_ranges: tuple[tuple[int, int], ...]
    """The first ranges of missing sequences."""


@dataclass(frozen=True, slots=True)
class Report:
    """The result of the whole audit."""

    findings: tuple[Finding, ...]
    tallies: Mapping[tuple[str, int], Tally]
    latencies: Latencies
    leader_changes: int = 0
    """Number of leader changes of the partitions while they were read."""

    @property
    def records(self) -> int:
        """Return the number of stamped records."""
        return sum(finding.records for finding in self.findings)

    @property
    def lost(self) -> int:
        """Return the number of missing sequences."""
        return sum(finding.lost for finding in self.findings)

    @property
    def duplicated(self) -> int:
        """Return the number of records whose sequence occurred before."""
        return sum(finding.duplicated for finding in self.findings)

    @property
    def reordered(self) -> int:
        """Return the number of sequences that first occurred behind a greater one."""
        return sum(finding.reordered for finding in self.findings)

    @property
    def unstamped(self) -> int:
        """Return the number of records without a stamp."""
        return sum(tally.unstamped for tally in self.tallies.values())

    @property
    def of_client_clocks(self) -> int:
        """Return the number of stamped records with CreateTime timestamps, whose latency includes no broker."""
        return sum(max(0, tally.records - tally.unstamped - tally.append_times) for tally in self.tallies.values())

    @property
    def is_exactly_once(self) -> bool:
        """Whether something was audited, nothing is lost, and nothing is duplicated."""
        return bool(self.findings) and self.lost == 0 and self.duplicated == 0

    def as_json(self) -> str:
        """Return the report for programs."""
        return json.dumps(self._value(), indent=2)

    def _value(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "reordered": self.reordered,
            "unstamped": self.unstamped,
            "exactly_once": self.is_exactly_once,
            "leader_changes": self.leader_changes,
            "latency": self._latency(),
            "partitions": [
                {
                    "topic": topic,
                    "partition": partition,
                    "first_offset": tally.first_offset,
                    "last_offset": tally.last_offset,
                    "records": tally.records,
                    "unstamped": tally.unstamped,
                    "duplicates": [
                        {"offset": d.offset, "producer": d.producer, "sequence": d.sequence} for d in tally.duplicates
                    ],
                    "producers": [
                        {
                            "producer": f.producer,
                            "records": f.records,
                            "lost": f.lost,
                            "duplicated": f.duplicated,
                            "reordered": f.reordered,
                            "given_up": f.given_up,
                            "unacknowledged": f.unacknowledged,
                            "lost_sequences": [list(span) for span in f.lost_ranges],
                        }
                        for f in self.findings
                        if (f.topic, f.partition) == (topic, partition)
                    ],
                }
                for (topic, partition), tally in sorted(self.tallies.items())
            ],
        }

    def _latency(self) -> dict[str, Any]:
        histogram = self.latencies.histogram()
        appended = sum(tally.append_times for tally in self.tallies.values())
        total = sum(tally.records for tally in self.tallies.values())
        return {
            "unit": "us",
            "from": "the send time in the stamp",
            "to": _time_of(appended, total),
            "means_nothing_of": self.of_client_clocks,
            "records_before_their_sending": self.latencies.negative,
            **{f"p{quantile * 100:g}": histogram.at_quantile(quantile) for quantile in QUANTILES},
            "max": histogram.max_us,
        }

    def as_table(self) -> str:
        """Return the report for people: a line for each partition, details of errors, and totals."""
        lines = [
            f"{'partition':<32} {'records':>14} {'producers':>9} {'lost':>12} {'duplicated':>12} {'reordered':>12}"
        ]
        for key in sorted({(f.topic, f.partition) for f in self.findings} | set(self.tallies)):
            mine = [f for f in self.findings if (f.topic, f.partition) == key]
            sums = [sum(getattr(f, name) for f in mine) for name in ("records", "lost", "duplicated", "reordered")]
            amiss = "".join(f" {count:>12,}" for count in sums[1:])
            lines.append(f"{key[0] + '-' + str(key[1]):<32} {sums[0]:>14,} {len(mine):>9}{amiss}")
        lines += self._details()
        latency = self._latency()
        if latency["means_nothing_of"] < self.records:
            figures = [name for name in latency if name == "max" or name.removeprefix("p")[:1].isdigit()]
            shown = ", ".join(f"{name} {latency[name] / 1000:,.1f} ms" for name in figures)
            lines.append(f"latency, {latency['from']} to {latency['to']}: {shown}")
        if latency["means_nothing_of"]:
            lines.append(
                f"the latency of {latency['means_nothing_of']:,} records means nothing: their time is a client's own,"
                " taken when it made the record and not when the broker had it; give the topic"
                " message.timestamp.type=LogAppendTime"
            )
        if self.unstamped:
            lines.append(f"{self.unstamped:,} records have no stamp and were not judged")
        if self.leader_changes:
            often = "once" if self.leader_changes == 1 else f"{self.leader_changes:,} times"
            lines.append(f"leaders changed {often} while it was read")
        decision = "every record is there once" if self.is_exactly_once else "NOT exactly once"
        decision = decision if self.findings else "nothing was judged"
        lines.append(
            f"{self.records:,} records: {self.lost:,} lost, {self.duplicated:,} duplicated,"
            f" {self.reordered:,} reordered: {decision}"
        )
        return "\n".join(lines)

    def _details(self) -> list[str]:
        lines = []
        for f in self.findings:
            if f.lost:
                spans = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in f.lost_ranges)
                among = f" ({f.given_up:,} of them given up by the producer)" if f.given_up else ""
                lines.append(f"{f.topic}-{f.partition} producer {f.producer}: lost sequences {spans}{among}")
        for (topic, partition), tally in sorted(self.tallies.items()):
            lines += [
                f"{topic}-{partition} offset {d.offset}: sequence {d.sequence} of producer {d.producer} again"
                for d in tally.duplicates
            ]
        return lines


def build_report(tallies: Mapping[tuple[str, int], Tally], expected: Sequence[Expected] = ()) -> Report:
    """Build the report from tallies and acknowledged counts, which also reveal a lost end of a partition."""
    acknowledged = {(e.topic, e.partition, e.producer): e for e in expected}
    seen = {
        (topic, partition, producer): sequences
        for (topic, partition), tally in tallies.items()
        for producer, sequences in tally.by_producer.items()
    }
    findings = [
        _check(key, seen.get(key, Sequences()), acknowledged.get(key))
        for key in sorted(seen.keys() | acknowledged.keys())
    ]
    latencies = Latencies()
    for tally in tallies.values():
        latencies.merge(tally.latencies)
    return Report(tuple(findings), dict(tallies), latencies)


def _check(key: tuple[str, int, int], sequences: Sequences, expected: Expected | None) -> Finding:
    sent = None if expected is None else expected.acknowledged + expected.failed
    missing = sequences.lost(sent)
    given_up = 0 if expected is None else min(intervals.size(missing), expected.failed)
    return Finding(
        *key,
        records=sequences.records,
        lost=intervals.size(missing) - given_up,
        duplicated=sequences.duplicated,
        reordered=sequences.reordered,
        given_up=given_up,
        unacknowledged=0 if sent is None else sequences.unsent(sent),
        lost_ranges=tuple((int(first), int(last)) for first, last in missing[:SHOWN]),
    )


def _time_of(appended: int, records: int) -> str:
    if appended == records:
        return "the broker's time of the append (LogAppendTime)"
    if appended == 0:
        return "the record's own time (CreateTime: a client's clock, not the broker's)"
    return f"the record's time (the broker's of {appended:,} records, a client's of {records - appended:,})"
