"""`--describe` of `pybroker consumer-groups`: offsets and lag, members, state.

Owns the columns and their widths, which are those of Kafka 4.3's tool. Must not know other options.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import print_json
from pybroker.cli.kafka_exceptions import named
from pybroker.client.administration.admin import Admin
from pybroker.client.administration.groups import GroupDescription, MemberDescription, Offsets
from pybroker.client.administration.topics import LATEST, TopicPartition
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse

DESCRIBED: dict[str, Any] = {
    "group": "string",
    "type": "string",
    "state": "string",
    "assignor": "string",
    "coordinator": {"id": "integer", "host": "string", "port": "integer"},
    "groupEpoch": "integer|null",
    "targetEpoch": "integer|null",
    "members": [
        {
            "memberId": "string",
            "instanceId": "string|null",
            "clientId": "string",
            "host": "string",
            "epoch": "integer|null",
            "assignment": [{"topic": "string", "partition": "integer"}],
        }
    ],
    "offsets": [
        {
            "topic": "string",
            "partition": "integer",
            "offset": "integer|null",
            "leaderEpoch": "integer|null",
            "endOffset": "integer|null",
            "lag": "integer|null",
            "memberId": "string|null",
        }
    ],
}
"""The document of a group with `--json`, whatever the other options are."""
_MISSING = "-"
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def describe(admin: Admin, arguments: argparse.Namespace, group_ids: Sequence[str]) -> None:
    """Print the requested sections of each group, by id."""
    groups = admin.describe_groups(group_ids)
    if arguments.json:
        print_json([_as_json(admin, groups[group_id]) for group_id in sorted(groups)])
        return
    for group in groups.values():
        if group.error is not None:
            print(
                "\nError: Executing consumer group command failed due to "
                f"{named(ErrorCode.GROUP_ID_NOT_FOUND, group.error)}"
            )
            return
    for group_id in sorted(groups):
        group = groups[group_id]
        if arguments.members:
            _print_members(group, verbose=arguments.verbose)
        elif arguments.state is not None:
            _print_state(group, verbose=arguments.verbose)
        else:
            _print_offsets(group, _rows(admin, group), verbose=arguments.verbose)


def _as_json(admin: Admin, group: GroupDescription) -> dict[str, object]:
    """Return a group's document. Raises CommandError for a group that cannot be described."""
    if group.error is not None:
        words = named(ErrorCode.GROUP_ID_NOT_FOUND, group.error)
        raise CommandError(f"Error: Executing consumer group command failed due to {words}")
    node = group.coordinator
    members = [
        {
            "memberId": member.member_id,
            "instanceId": member.instance_id,
            "clientId": member.client_id,
            "host": member.host,
            "epoch": member.epoch,
            "assignment": [{"topic": one.topic, "partition": one.partition} for one in member.assignment],
        }
        for member in group.members
    ]
    offsets = [
        {
            "topic": row.topic,
            "partition": row.partition,
            "offset": row.offset,
            "leaderEpoch": row.leader_epoch,
            "endOffset": row.end,
            "lag": row.lag,
            "memberId": None if row.member == _MISSING else row.member,
        }
        for row in _rows(admin, group)
    ]
    return {
        "group": group.group_id,
        "type": group.type.lower(),
        "state": group.state,
        "assignor": group.assignor,
        "coordinator": {"id": node.node_id, "host": node.host, "port": node.port},
        "groupEpoch": group.group_epoch,
        "targetEpoch": group.target_epoch,
        "members": members,
        "offsets": offsets,
    }


def _has_rows(group: GroupDescription, rows: int) -> bool:
    """Print a message about a group's special state. Returns whether rows must be printed."""
    if group.state == "Dead":
        print(f"\nError: Consumer group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif group.state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    return group.state != "Dead" and rows > 0


def _text(value: object) -> str:
    return _MISSING if value is None or value == "" else str(value)


# ------------------------------------------------------------------------------------------------------------ offsets


class _Row(NamedTuple):
    """One partition of a group; None is printed as missing."""

    group: str
    topic: str
    partition: int
    leader_epoch: int | None
    offset: int | None
    end: int | None
    lag: int | None
    member: str
    host: str
    client: str


def _rows(admin: Admin, group: GroupDescription) -> list[_Row]:
    """Return the rows: members with the most partitions first, then unassigned partitions."""
    committed = admin.list_group_offsets(group.group_id)
    members = sorted((m for m in group.members if m.assignment), key=lambda m: -len(m.assignment))
    assigned = {partition for member in members for partition in member.assignment}
    shares: list[tuple[Iterable[TopicPartition], tuple[str, str, str]]] = [
        (member.assignment, (member.member_id, member.host, member.client_id)) for member in members
    ]
    shares.append((committed.keys() - assigned, (_MISSING, _MISSING, _MISSING)))
    ends = _ends(admin, assigned | committed.keys())
    return [
        _row(group.group_id, partition, committed, ends, who)
        for partitions, who in shares
        for partition in sorted(partitions, key=lambda p: (p.topic, p.partition))
    ]


def _ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the log end offsets of partitions with a leader."""
    wanted = set(partitions)
    topics = admin.describe_topics(sorted({p.topic for p in wanted})) if wanted else []
    with_leader = {TopicPartition(t.name, p.index) for t in topics for p in t.partitions if p.leader >= 0} & wanted
    return {p: listed.offset for p, listed in admin.list_offsets(dict.fromkeys(with_leader, LATEST)).items()}


def _row(
    group_id: str,
    partition: TopicPartition,
    committed: Offsets,
    ends: Mapping[TopicPartition, int],
    who: tuple[str, str, str],
) -> _Row:
    offset, end = committed.get(partition), ends.get(partition)
    lag = None if offset is None or end is None else end - offset.offset
    epoch = None if offset is None or offset.leader_epoch < 0 else offset.leader_epoch
    at = None if offset is None else offset.offset
    return _Row(group_id, partition.topic, partition.partition, epoch, at, end, lag, *who)


def _print_offsets(group: GroupDescription, rows: list[_Row], *, verbose: bool) -> None:
    if not _has_rows(group, len(rows)):
        return
    titles = ("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    lines = [(*titles, "CONSUMER-ID", "HOST", "CLIENT-ID"), *(tuple(_text(value) for value in row) for row in rows)]
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 15, 0]
    for column in (0, 1, 7, 8):
        widths[column] = max([15, *(len(line[column]) for line in lines[1:])])
    shown = [column for column in range(10) if verbose or column != 3]
    for line in lines:
        print("\n" + " ".join(f"{line[column]:<{widths[column]}}" for column in shown), end="")
    print()


# ------------------------------------------------------------------------------------------------------------ members


def _print_members(group: GroupDescription, *, verbose: bool) -> None:
    _has_rows(group, len(group.members))  # the headings are printed in any case, as by Kafka's tool
    upgrades = {member.upgraded for member in group.members}
    migrates = {True, False} <= upgrades
    has_instances = any(member.instance_id for member in group.members)
    titles = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    titles += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT", "UPGRADED"]
    rows = [_member_row(group, member) for member in group.members]
    least = [15, 15, 17, 15, 15, 15, 15, 20, 15, 20, 0]
    widths = [
        max([least[c], *(len(row[c]) for row in rows)]) if c in (0, 1, 2, 3, 4, 7, 9) else least[c] for c in range(11)
    ]
    shown = [c for c in range(6) if has_instances or c != 2]
    more = list(range(6, 10 + migrates)) if verbose else []
    for number, row in enumerate([titles, *rows]):
        first = "".join(f"{row[c]:<{widths[c]}} " for c in shown)
        print(("\n" if number == 0 else "") + first + " ".join(f"{row[c]:<{widths[c]}}" for c in more))


def _member_row(group: GroupDescription, member: MemberDescription) -> list[str]:
    return [
        group.group_id,
        member.member_id,
        member.instance_id or "",
        member.host,
        member.client_id,
        str(len(member.assignment)),
        _text(member.epoch),
        _text(_assignment(member.assignment)),
        _text(group.target_epoch),
        _text(_assignment(member.target or ())),
        _text(None if member.upgraded is None else str(member.upgraded).lower()),
    ]


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return ";".join(sorted(f"{topic}:{','.join(map(str, sorted(ids)))}" for topic, ids in by_topic.items()))


# -------------------------------------------------------------------------------------------------------------- state


def _print_state(group: GroupDescription, *, verbose: bool) -> None:
    if not _has_rows(group, 1):
        return
    node = group.coordinator
    coordinator = f"{node.host}:{node.port}  ({node.node_id})"
    titles = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE"]
    values = [group.group_id, coordinator, _text(group.assignor), group.state]
    widths = [max(15, len(group.group_id)), max(25, len(coordinator)), 20, 20]
    if verbose:
        titles += ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        values += [_text(group.group_epoch), _text(group.target_epoch)]
        widths += [15, 25]
    titles.append("#MEMBERS")
    values.append(str(len(group.members)))
    for line in (titles, values):
        print("\n" + " ".join(f"{text:<{width}}" for text, width in zip(line, [*widths, 0], strict=True)), end="")
    print()
