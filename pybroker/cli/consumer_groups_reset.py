"""`--reset-offsets` of `pybroker consumer-groups`: which partitions, to which offsets, and how that is shown.

Owns the scenarios and their messages, which are those of Kafka 4.3's tool. Changes nothing.
"""

from __future__ import annotations

import csv
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.errors import CommandError
from pybroker.cli.text_files import read_text
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.groups import Offsets
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.errors import BrokerError
from pybroker.client.java.hash_order import HashOrderedSet, partition_hash
from pybroker.client.settings import parse_duration_ms
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse

Plan = dict[str, dict[TopicPartition, int]]
"""New offsets by group; partitions in the order of Kafka's tool, which is that of a Java hash map."""

_INACTIVE = ("Empty", "Dead")
_LONGEST_UNQUOTED, _FIRST_SAFE = 24, "-"
"""Jackson quotes a text that is longer, or has a backslash or a character before `-`, which follows the comma."""
_NUMBER = re.compile(r"[0-9]{1,19}")


def plan_reset(admin: Admin, arguments: argparse.Namespace, group_ids: Sequence[str]) -> Plan:
    """Return the new offsets of each group. A group with members is reported on standard output and has none."""
    plan: Plan = {}
    for group_id, group in admin.describe_groups(group_ids).items():
        if group.state in _INACTIVE:
            plan[group_id] = in_java_order(Reset(admin, arguments, group_id).plan())
        else:
            print(
                f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, "
                f"but the current state is {group.state}."
            )
            plan[group_id] = {}
    return plan


def in_java_order(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return offsets in the order of a Java hash map."""
    return {partition: offsets[partition] for partition in HashOrderedSet(partition_hash, offsets)}


class Reset:
    """The reset of one group."""

    def __init__(self, admin: Admin, arguments: argparse.Namespace, group_id: str) -> None:
        self.admin, self.arguments, self.group_id = admin, arguments, group_id

    def plan(self) -> dict[TopicPartition, int]:
        """Return the offsets of the chosen scenario, for the chosen partitions."""
        options = self.arguments
        partitions = self.chosen_partitions()
        scenarios: list[tuple[bool, Callable[[list[TopicPartition]], dict[TopicPartition, int]]]] = [
            (options.to_offset is not None, lambda some: self._within_range(dict.fromkeys(some, options.to_offset))),
            (options.to_earliest, lambda some: self._at(some, EARLIEST)),
            (options.to_latest, lambda some: self._at(some, LATEST)),
            (options.shift_by is not None, self._shift),
            (options.to_datetime is not None, lambda some: self._at_time(some, parse_datetime(options.to_datetime))),
            (options.by_duration is not None, lambda some: self._at_time(some, _before_now(options.by_duration))),
            (options.from_file is not None, lambda _: self._from_file(options.from_file)),
            (options.to_current, self._current),
        ]
        return next(plan for chosen, plan in scenarios if chosen)(partitions)

    def chosen_partitions(self) -> list[TopicPartition]:
        """Return the partitions whose offsets are reset."""
        return self.existing(list(self.committed()) if self.arguments.all_topics else self.named(self.arguments.topic))

    def named(self, topics: Sequence[str]) -> list[TopicPartition]:
        """Return the partitions of `--topic` options. Raises the error of a topic that does not exist."""
        partitions, missing = parse_topics(self.admin, topics)
        for error in missing.values():
            raise error
        return partitions

    def existing(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions. Raises CommandError if one does not exist or has no leader."""
        known = {
            TopicPartition(t.name, p.index): p.leader
            for t in (self.admin.describe_topics(sorted({p.topic for p in partitions})) if partitions else [])
            for p in t.partitions
        }
        for what, bad in (
            ("do not exist", [p for p in partitions if p not in known]),
            ("have no leader", [p for p in partitions if known.get(p, 0) < 0]),
        ):
            if bad:
                names = ",".join(f"{p.topic}-{p.partition}" for p in bad)
                raise CommandError(f'The partitions "{names}" {what}')
        return partitions

    def committed(self) -> Offsets:
        """Return the committed offsets of the group."""
        return self.admin.list_group_offsets(self.group_id)

    def _at(self, partitions: Sequence[TopicPartition], where: int) -> dict[TopicPartition, int]:
        found = self.admin.list_offsets(dict.fromkeys(partitions, where))
        return {partition: listed.offset for partition, listed in found.items()}

    def _at_time(self, partitions: Sequence[TopicPartition], time_ms: int) -> dict[TopicPartition, int]:
        found = self._at(partitions, time_ms)
        late = [partition for partition, offset in found.items() if offset < 0]
        for partition in late:
            print(
                f"\nWarn: Partition {partition.partition} from topic {partition.topic} is empty. "
                "Falling back to latest known offset."
            )
        return found | self._at(late, LATEST)

    def _shift(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        committed = self.committed()
        for partition in partitions:
            if partition not in committed:
                raise CommandError(
                    f"Cannot shift offset for partition {partition.topic}-{partition.partition} "
                    "since there is no current committed offset"
                )
        by = self.arguments.shift_by
        return self._within_range({partition: committed[partition].offset + by for partition in partitions})

    def _current(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        committed = self.committed()
        known = {partition: committed[partition].offset for partition in partitions if partition in committed}
        return known | self._at([partition for partition in partitions if partition not in known], LATEST)

    def _from_file(self, path: Path) -> dict[TopicPartition, int]:
        plan = read_plan(path, self.arguments.group)
        if self.group_id not in plan:
            print(f"\nError: No reset plan for group {self.group_id} found")
            return {}
        return self._within_range(plan[self.group_id])

    def _within_range(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        first, last = self._at(list(wanted), EARLIEST), self._at(list(wanted), LATEST)
        allowed = {}
        for partition, offset in wanted.items():
            allowed[partition] = min(max(offset, first[partition]), last[partition])
            if allowed[partition] != offset:
                how = "higher than latest" if offset > last[partition] else "lower than earliest"
                print(
                    f"WARN New offset ({offset}) is {how} offset for topic partition "
                    f"{partition.topic}-{partition.partition}. Value will be set to {allowed[partition]}",
                    file=sys.stderr,
                )
        return allowed


def parse_topics(admin: Admin, topics: Sequence[str]) -> tuple[list[TopicPartition], dict[str, BrokerError]]:
    """Return the partitions of `--topic` options, `t:0,1` or `t` for all, and the errors of topics."""
    partitions: list[TopicPartition] = []
    missing: dict[str, BrokerError] = {}
    for text in topics:
        topic, colon, indexes = text.partition(":")
        if colon:
            partitions += [TopicPartition(topic, _index(index, text)) for index in indexes.split(",")]
            continue
        try:
            (described,) = admin.describe_topics([topic])
        except BrokerError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            missing[topic] = error
        else:
            partitions += [TopicPartition(topic, partition.index) for partition in described.partitions]
    return list(dict.fromkeys(partitions)), missing


def _index(text: str, argument: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise CommandError(f"Invalid partition '{text}' specified in topic arg '{argument}''")
    return int(text)


def parse_datetime(text: str) -> int:
    """Return the milliseconds of an ISO 8601 text; UTC where it has no zone. Raises CommandError."""
    try:
        moment = datetime.fromisoformat(text) if "T" in text else None
    except ValueError:
        moment = None
    if moment is None:
        raise CommandError(f"--to-datetime {text}: must read like 2026-01-31T13:45:00.000")
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _before_now(duration: str) -> int:
    return round(time.time() * 1000) - parse_duration_ms(duration)


def read_plan(path: Path, group_ids: Sequence[str]) -> Plan:
    """Read rows of topic, partition and offset, after the group unless only one is given. Raises CommandError."""
    plan: Plan = {}
    for number, row in enumerate(_rows(path), 1):
        if len(row) == 3 and len(group_ids) == 1:
            row = [group_ids[0], *row]
        if len(row) != 4 or not _NUMBER.fullmatch(row[2].strip()) or not _NUMBER.fullmatch(row[3].strip()):
            raise CommandError(f"{path}: line {number} must read [group,]topic,partition,offset")
        plan.setdefault(row[0], {})[TopicPartition(row[1], int(row[2]))] = int(row[3])
    return plan


def _rows(path: Path) -> list[list[str]]:
    try:
        return list(csv.reader(read_text(path).splitlines()))
    except csv.Error as error:
        raise CommandError(f"cannot read {path}: {error}") from None


def print_plan(plan: Plan) -> None:
    """Print the table."""
    group_width = max([15, *map(len, plan)])
    topic_width = max([15, *(len(p.topic) for offsets in plan.values() for p in offsets)])
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plan else []
    rows += [
        (g, p.topic, str(p.partition), str(offset)) for g, offsets in plan.items() for p, offset in offsets.items()
    ]
    for group_id, topic, partition, offset in rows:
        print(f"\n{group_id:<{group_width}} {topic:<{topic_width}} {partition:<10} {offset}", end="")
    print()


def print_csv(plan: Plan, *, with_group: bool) -> None:
    """Print the format of `--from-file`."""
    for group_id, offsets in plan.items():
        for partition, offset in offsets.items():
            names = [group_id, partition.topic] if with_group else [partition.topic]
            print(",".join([*map(_quoted, names), str(partition.partition), str(offset)]))
    print()


def _quoted(name: str) -> str:
    """Return a name as Jackson writes it in Kafka's tool, which quotes more than CSV requires."""
    units = len(name.encode("utf-16-le", "surrogatepass")) // 2
    if units <= _LONGEST_UNQUOTED and all(char >= _FIRST_SAFE and char != "\\" for char in name):
        return name
    return '"' + name.replace('"', '""') + '"'
