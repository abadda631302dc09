"""What two samples of a cluster say: records a second of topics and partitions, lag of groups and what they make of it,
bytes a second of clients.

Owns the arithmetic and the order of rows: the highest rate or lag first. Must not query, print or know terminals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pybroker.cli.top.clients import Client, ClientUse
    from pybroker.cli.top.sampling import Sample
    from pybroker.client.administration.topics import TopicPartition

TOPIC_HEAD = ("TOPIC", "PARTITIONS", "RECORDS/S", "RECORDS")
PARTITION_HEAD = ("TOPIC", "PARTITION", "LEADER", "RECORDS/S", "END-OFFSET")
GROUP_HEAD = ("GROUP", "STATE", "PARTITIONS", "RECORDS/S", "LAG", "BEHIND")
CLIENT_HEAD = ("USER", "CLIENT-ID", "BYTES-IN/S", "BYTES-OUT/S", "THROTTLED")
_LEAST_S = 1e-3


class TopicRow(NamedTuple):
    """One topic."""

    topic: str
    partitions: int
    rate: float
    records: int
    """The sum of its log end offsets."""

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        return self.topic, str(self.partitions), rate_text(self.rate), str(self.records)


class PartitionRow(NamedTuple):
    """One partition."""

    topic: str
    partition: int
    leader: int | None
    rate: float
    end: int

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        leader = "none" if self.leader is None else str(self.leader)
        return self.topic, str(self.partition), leader, rate_text(self.rate), str(self.end)


class GroupRow(NamedTuple):
    """One group."""

    group: str
    state: str
    partitions: int
    rate: float
    """Records a second, from its committed offsets."""
    lag: int

    @property
    def behind_s(self) -> float | None:
        """Return the seconds that the group needs for its lag at its rate; None without a rate."""
        if not self.lag:
            return 0.0
        return self.lag / self.rate if self.rate > 0 else None

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        behind = self.behind_s
        shown = "-" if behind is None else f"{behind:.0f} s"
        return self.group, self.state, str(self.partitions), rate_text(self.rate), str(self.lag), shown


class ClientRow(NamedTuple):
    """The entity of a quota."""

    user: str
    client_id: str
    bytes_in: float
    """Bytes a second of Produce requests."""
    bytes_out: float
    """Bytes a second of Fetch responses."""
    throttled: float
    """Seconds of throttling a second; several connections can have more than one."""

    def cells(self) -> tuple[str, ...]:
        """Return the row as text."""
        names = self.user or "*", self.client_id or "*"
        return *names, rate_text(self.bytes_in), rate_text(self.bytes_out), f"{self.throttled:.0%}"


class View(NamedTuple):
    """The content of the display."""

    seconds: float
    brokers: int
    without_leader: int
    under_replicated: int
    topics: Sequence[TopicRow]
    partitions: Sequence[PartitionRow]
    groups: Sequence[GroupRow]
    groups_left_out: int
    clients: Sequence[ClientRow] = ()

    @property
    def rate(self) -> float:
        """Return the records a second of the whole cluster."""
        return sum(row.rate for row in self.topics)

    def as_json(self) -> dict[str, object]:
        """Return the document of `--json`."""
        return {
            "seconds": round(self.seconds, 3),
            "brokers": self.brokers,
            "topicCount": len(self.topics),
            "partitionCount": len(self.partitions),
            "withoutLeader": self.without_leader,
            "underReplicated": self.under_replicated,
            "recordsPerSecond": round(self.rate, 3),
            "topics": [
                {
                    "topic": row.topic,
                    "partitions": row.partitions,
                    "recordsPerSecond": round(row.rate, 3),
                    "records": row.records,
                }
                for row in self.topics
            ],
            "partitions": [
                {
                    "topic": row.topic,
                    "partition": row.partition,
                    "leader": row.leader,
                    "recordsPerSecond": round(row.rate, 3),
                    "endOffset": row.end,
                }
                for row in self.partitions
            ],
            "groups": [
                {
                    "group": row.group,
                    "state": row.state,
                    "partitions": row.partitions,
                    "recordsPerSecond": round(row.rate, 3),
                    "lag": row.lag,
                    "secondsBehind": None if row.behind_s is None else round(row.behind_s, 3),
                }
                for row in self.groups
            ],
            "groupsLeftOut": self.groups_left_out,
            "clients": [
                {
                    "user": row.user,
                    "clientId": row.client_id,
                    "bytesInPerSecond": round(row.bytes_in, 3),
                    "bytesOutPerSecond": round(row.bytes_out, 3),
                    "throttledSecondsPerSecond": round(row.throttled, 3),
                }
                for row in self.clients
            ],
        }


def build_view(before: Sample, now: Sample) -> View:
    """Return the differences between two samples."""
    seconds = max(now.at_s - before.at_s, _LEAST_S)
    partitions = [
        PartitionRow(
            partition.topic,
            partition.partition,
            leader,
            _rate(before.ends, now.ends, partition, seconds),
            now.ends.get(partition, 0),
        )
        for partition, leader in now.leaders.items()
    ]
    by_topic: dict[str, list[PartitionRow]] = {}
    for row in partitions:
        by_topic.setdefault(row.topic, []).append(row)
    topics = [
        TopicRow(topic, len(rows), sum(row.rate for row in rows), sum(row.end for row in rows))
        for topic, rows in by_topic.items()
    ]
    groups = []
    for group, sample in now.groups.items():
        earlier = before.groups[group].offsets if group in before.groups else {}
        rate = sum(_rate(earlier, sample.offsets, partition, seconds) for partition in sample.offsets)
        lag = sum(max(0, now.ends.get(partition, offset) - offset) for partition, offset in sample.offsets.items())
        groups.append(GroupRow(group, sample.state, len(sample.offsets), rate, lag))
    return View(
        seconds,
        now.brokers,
        sum(leader is None for leader in now.leaders.values()),
        now.under_replicated,
        sorted(topics, key=lambda row: (-row.rate, row.topic)),
        sorted(partitions, key=lambda row: (-row.rate, row.topic, row.partition)),
        sorted(groups, key=lambda row: (-row.lag, -row.rate, row.group)),
        now.groups_left_out,
        sorted(
            _client_rows(before.clients or {}, now.clients or {}, seconds),
            key=lambda row: (-row.bytes_in - row.bytes_out, -row.throttled, row.user, row.client_id),
        ),
    )


def _client_rows(
    before: Mapping[Client, ClientUse], now: Mapping[Client, ClientUse], seconds: float
) -> Iterator[ClientRow]:
    """Yield each client's rates, 0 for a new client, or for counts that were reset by a restart of a broker."""
    for client, use in now.items():
        earlier = before.get(client, use)
        rates = (max(0.0, last - first) / seconds for first, last in zip(earlier, use, strict=True))
        yield ClientRow(client.user, client.client_id, *rates)


def _rate(
    before: Mapping[TopicPartition, int], now: Mapping[TopicPartition, int], partition: TopicPartition, seconds: float
) -> float:
    """Return a partition's rate, 0 for a new one, or one whose offset decreased because it was recreated or reset."""
    if partition not in before or partition not in now:
        return 0.0
    return max(0, now[partition] - before[partition]) / seconds


def rate_text(rate: float) -> str:
    """Return a rate in a short form."""
    for least, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if rate >= least:
            return f"{rate / (1e3 if unit == 'k' else least):.1f}{unit}"
    return f"{rate:.0f}" if rate >= 10 or not rate else f"{rate:.1f}"


def summary(view: View) -> str:
    """Return the cluster in one line."""
    words = (
        f"{view.brokers} brokers, {len(view.topics)} topics, {len(view.partitions)} partitions, "
        f"{rate_text(view.rate)} records/s over {view.seconds:.1f} s"
    )
    if view.without_leader:
        words += f", {view.without_leader} WITHOUT A LEADER"
    if view.under_replicated:
        words += f", {view.under_replicated} under-replicated"
    if view.groups_left_out:
        words += f", {view.groups_left_out} groups left out (--most-groups)"
    return words
