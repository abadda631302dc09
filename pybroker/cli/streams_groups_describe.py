"""`--describe` of `pybroker streams-groups`: offsets, members and states, in the tables of Kafka 4.4's tool.

Owns these tables. Changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.java.hash_order import HashOrderedSet, partition_hash

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.groups import Offsets
    from pybroker.client.administration.streams_groups import StreamsGroupDescription, StreamsTasks

_NO_DESCRIPTION = "No topology description is stored for streams group '{}'."


def describe(admin: Admin, arguments: argparse.Namespace, group_ids: Sequence[str]) -> int:
    """Print the description of each group; returns 1 if a topology was requested, since none is stored."""
    for group_id in group_ids:
        group = admin.describe_streams_groups([group_id])[group_id]
        if arguments.topology:
            print(f"\nError: {_NO_DESCRIPTION.format(group_id)}")
        elif arguments.members:
            _print_members(group, verbose=arguments.verbose)
        elif arguments.state is not None:
            _print_state(group, verbose=arguments.verbose)
        else:
            _print_offsets(admin, group, verbose=arguments.verbose)
    return int(bool(group_ids) and arguments.topology)


def source_topics(group: StreamsGroupDescription, *, repartition: bool) -> Collection[str]:
    """Return the names of the source topics of a group, with `repartition` also of its repartition topics."""
    found = {name for part in group.subtopologies for name in part.source_topics}
    if repartition:
        found |= {topic.name for part in group.subtopologies for topic in part.repartition_source_topics}
    return found


def _print_if_empty(group: StreamsGroupDescription) -> None:
    if group.state == "Dead":
        print(f"\nError: Streams group '{group.group_id}' does not exist.")
    elif group.state == "Empty":
        print(f"\nError: Streams group '{group.group_id}' has no active members.")


def _print_members(group: StreamsGroupDescription, *, verbose: bool) -> None:
    if not group.members:
        return
    _print_if_empty(group)
    widths = {"GROUP": max(15, len(group.group_id))}
    for name, values in (
        ("MEMBER", [member.member_id for member in group.members]),
        ("PROCESS", [member.process_id for member in group.members]),
        ("CLIENT-ID", [member.client_id for member in group.members]),
    ):
        widths[name] = max(15, *map(len, values))
    rows: list[tuple[object, ...]]
    if verbose:
        form = (
            f"{{:<{widths['GROUP']}}} {{:<25}} {{:<15}}{{:<{widths['MEMBER']}}} {{:<15}} {{:<15}} "
            f"{{:<{widths['PROCESS']}}} {{:<{widths['CLIENT-ID']}}} {{}}"
        )
        names = "GROUP", "TARGET-ASSIGNMENT-EPOCH", "TOPOLOGY-EPOCH", "MEMBER", "MEMBER-PROTOCOL", "MEMBER-EPOCH"
        rows = [(*names, "PROCESS", "CLIENT-ID", "ASSIGNMENTS")]
        for member in group.members:
            protocol = "classic" if member.is_classic else "streams"
            epochs = group.target_epoch, group.topology_epoch
            of_member = member.member_id, protocol, member.epoch, member.process_id, member.client_id
            tasks = _shown_tasks(member.assignment, "") + _shown_tasks(member.target, "TARGET-")
            rows.append((group.group_id, *epochs, *of_member, tasks))
    else:
        form = (
            f"{{:<{widths['GROUP']}}} {{:<{widths['MEMBER']}}} {{:<{widths['PROCESS']}}} "
            f"{{:<{widths['CLIENT-ID']}}} {{}}"
        )
        rows = [("GROUP", "MEMBER", "PROCESS", "CLIENT-ID", "ASSIGNMENTS")]
        for member in group.members:
            of_member = member.member_id, member.process_id, member.client_id  # type: ignore[assignment]
            rows.append((group.group_id, *of_member, _shown_tasks(member.assignment, "")))
    for row in rows:
        print(form.format(*row))


def _shown_tasks(tasks: StreamsTasks, prefix: str) -> str:
    kinds = {"ACTIVE": tasks.active, "STANDBY": tasks.standby, "WARMUP": tasks.warmup}
    return "".join(
        f"{prefix}{kind}: " + "".join(f"{part}:[{','.join(map(str, indexes))}]; " for part, indexes in held.items())
        for kind, held in kinds.items()
        if held
    )


def _print_state(group: StreamsGroupDescription, *, verbose: bool) -> None:
    _print_if_empty(group)
    coordinator = f"{group.coordinator.host}:{group.coordinator.port} ({group.coordinator.node_id})"
    assignor = group.assignor or ""
    widths = max(15, len(group.group_id)), max(25, len(coordinator)), max(15, len(assignor)), 25
    form = "".join(f"{{:<{width}}} " for width in widths)
    names: tuple[object, ...] = "GROUP", "COORDINATOR (ID)", "ASSIGNOR", "STATE"
    values: tuple[object, ...] = group.group_id, coordinator, assignor, group.state
    if verbose:
        form += "{:<15} {:<25} "
        names += "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"
        values += group.group_epoch, group.target_epoch
    form += "{}"
    print(form.format(*names, "#MEMBERS"))
    print(form.format(*values, len(group.members)))


def _print_offsets(admin: Admin, group: StreamsGroupDescription, *, verbose: bool) -> None:
    partitions = list(HashOrderedSet(partition_hash, _active_partitions(group)))
    first, last = (admin.list_offsets(dict.fromkeys(partitions, where)) for where in (EARLIEST, LATEST))
    committed = admin.list_group_offsets(group.group_id)
    if not group.members:
        return
    _print_if_empty(group)
    width = max(15, *(len(partition.topic) for partition in partitions)) if partitions else 15
    form = f"{{:<{max(15, len(group.group_id))}}} {{:<{width}}} {{:<10}} "
    if verbose:
        form += "{:<15} {:<15} {:<15} {:<15}"
        columns: tuple[str, ...] = "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG"
    else:
        form += "{}"
        columns = ("OFFSET-LAG",)
    print(form.format("GROUP", "TOPIC", "PARTITION", *columns))
    for partition in partitions:
        values = _offsets_of(partition, committed, first[partition].offset, last[partition].offset)
        print(form.format(group.group_id, partition.topic, partition.partition, *(values if verbose else values[-1:])))


def _active_partitions(group: StreamsGroupDescription) -> Mapping[TopicPartition, None]:
    """Return the source partitions of the active tasks."""
    inputs = {
        part.id: (*part.source_topics, *(topic.name for topic in part.repartition_source_topics))
        for part in group.subtopologies
    }
    return {
        TopicPartition(topic, index): None
        for member in group.members
        for part, indexes in member.assignment.active.items()
        for topic in inputs.get(part, ())
        for index in indexes
    }


def _offsets_of(partition: TopicPartition, committed: Offsets, first: int, last: int) -> tuple[object, ...]:
    """Return current offset, leader epoch, log end offset and lag."""
    found = committed.get(partition)
    if found is None:
        return "-", "-", last, last - first
    return found.offset, "-" if found.leader_epoch < 0 else found.leader_epoch, last, last - found.offset
