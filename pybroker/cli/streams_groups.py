"""`pybroker streams-groups`: list, describe, reset and delete streams groups, as kafka-streams-groups does.

Owns option names and their exclusions, which are those of Kafka 4.4's tool, and the short actions.
`streams_groups_describe` describes groups, `streams_groups_topics` deletes internal topics. Scenarios of resets are
those of `consumer_groups_reset`. Works with any Kafka, by Admin only.

Not done: descriptions of topologies, which no broker here stores; Java's stack traces under an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.consumer_groups import (
    LONGEST_TIMEOUT_MS,
    SCENARIOS,
    add_reset,
    dashed,
    delete_offsets,
    exclude,
    is_given,
    parse_names,
)
from pybroker.cli.consumer_groups_reset import Plan, Reset, in_java_order, parse_topics, print_csv
from pybroker.cli.errors import CommandError
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.streams_groups_describe import describe, source_topics
from pybroker.cli.streams_groups_topics import delete_after_reset, delete_with_groups, internal_topics
from pybroker.client.errors import BrokerError, ClientError, SettingError
from pybroker.client.java.hash_order import in_hash_order
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.topics import TopicPartition

DESCRIPTION = (
    "List streams groups, describe a streams group, delete streams groups, or reset or delete their offsets. Options "
    "and output are those of kafka-streams-groups."
)
_ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
_STATES = ("Assigning", "Dead", "Empty", "NotReady", "Reconciling", "Stable")
_INACTIVE = ("Empty", "Dead")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add, flag = parser.add_argument, "store_true"
    add_cluster_options(parser, properties=True, required=False)
    add("--list", action=flag, help="list all streams groups")
    add("--describe", action=flag, help="describe groups: offset lag, members or states")
    add("--delete", action=flag, help="delete groups and their offsets")
    add("--reset-offsets", action=flag, help="reset the offsets of inactive groups")
    add("--delete-offsets", action=flag, help="delete offsets of a group")
    add("--group", action="append", default=[], metavar="GROUP", help="a group to act on; may be repeated")
    add("--all-groups", action=flag, help="act on all streams groups")
    add("--input-topic", action="append", default=[], metavar="TOPIC[:N,N]", help="an input topic, or partitions of it")
    add("--all-input-topics", action=flag, help="all input topics of the group's topology")
    add(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="with --describe: the state of groups; with --list: states, or only groups in STATES",
    )
    add("--members", action=flag, help="with --describe: the members and their tasks")
    add("--offsets", action=flag, help="with --describe: the lag of source partitions (default)")
    add("--topology", action=flag, help="with --describe: the stored description of the topology")
    add("--verbose", action=flag, help="with --describe: more columns")
    add("--timeout", type=int, default=30_000, metavar="MS", help="request timeout (default: 30000)")
    add("--delete-internal-topic", action="append", default=[], metavar="TOPIC", help="after a reset: delete a topic")
    add("--delete-all-internal-topics", action=flag, help="after a reset or a deletion: delete all internal topics")
    add_reset(parser)


def run(arguments: argparse.Namespace) -> int:
    """Execute the action, and return the exit status."""
    action = _check(arguments)
    try:
        limits = {"request.timeout.ms": arguments.timeout, "default.api.timeout.ms": arguments.timeout}
        with open_admin(arguments, limits) as admin:
            return _DO[action](admin, arguments)
    except ConfigError as error:
        raise CommandError(str(error), 2) from None
    except SettingError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise CommandError(f"Error: Executing streams group command failed due to {java_text(error)}") from None


# --------------------------------------------------------------------------------------------------------- the options


def _check(arguments: argparse.Namespace) -> str:
    """Reject options as Kafka's tool does, and return the action."""
    if arguments.bootstrap_server is None:
        raise CommandError('Missing required argument "[bootstrap-server]"')
    if not 1 <= arguments.timeout <= LONGEST_TIMEOUT_MS:
        raise CommandError(f"--timeout {arguments.timeout}: expected milliseconds from 1 to {LONGEST_TIMEOUT_MS}")
    chosen = [action for action in _ACTIONS if getattr(arguments, action)]
    for action in ("describe", "delete", "reset_offsets"):
        if action in chosen and not arguments.group and not arguments.all_groups:
            raise CommandError(f"Option [{dashed(action)}] takes one of these options: [all-groups], [group]")
    if "describe" in chosen:
        _check_describe(arguments)
    if "delete" in chosen and (arguments.input_topic or arguments.all_input_topics):
        raise CommandError("Kafka Streams does not support topic-specific offset deletion from a streams group.")
    if "delete_offsets" in chosen:
        _check_delete_offsets(arguments)
    if "reset_offsets" in chosen:
        _check_reset(arguments)
    _check_internal_topics(arguments)
    if (arguments.dry_run or arguments.execute) and not arguments.reset_offsets:
        raise CommandError("Only Option [reset-offsets] accepts [execute] or [dry-run]")
    if arguments.list:
        exclude(arguments, "list", ("members", "offsets", "topology"))
    if arguments.group:
        exclude(arguments, "group", ("all_groups", "list"))
    if arguments.input_topic:
        exclude(arguments, "input_topic", ("list", "describe", "delete"))
    if len(chosen) != 1:
        raise CommandError(
            "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, or "
            "--delete-offsets."
        )
    return chosen[0]


def _check_describe(arguments: argparse.Namespace) -> None:
    if arguments.members + arguments.offsets + arguments.topology + (arguments.state is not None) > 1:
        names = "[members], [offsets], [state], [topology]"
        raise CommandError(f"Option [describe] takes at most one of these options: {names}")
    if arguments.state:
        raise CommandError("Option [describe] does not take a value for [state]")


def _check_delete_offsets(arguments: argparse.Namespace) -> None:
    if not arguments.group or not (arguments.input_topic or arguments.all_input_topics):
        names = "[all-input-topics], [input-topic]"
        raise CommandError(f"Option [delete-offsets] takes the [group] and one of these options: {names}")
    if len(arguments.group) > 1:
        found = f"[{', '.join(arguments.group)}]"
        raise CommandError(f"Option [delete-offsets] supports only one [group] at a time, but found: {found}")


def _check_reset(arguments: argparse.Namespace) -> None:
    if arguments.dry_run and arguments.execute:
        raise CommandError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not arguments.dry_run and not arguments.execute:
        raise CommandError("Option [reset-offsets] takes the option: [execute] or [dry-run]")
    for scenario in SCENARIOS:
        if is_given(arguments, scenario):
            exclude(arguments, scenario, [other for other in SCENARIOS if other != scenario])
    if not (arguments.all_input_topics or arguments.input_topic or arguments.from_file is not None):
        raise CommandError("One of the reset scopes should be defined: --all-input-topics, --input-topic.")
    if not any(is_given(arguments, scenario) for scenario in SCENARIOS):
        names = ", ".join(f"[{dashed(scenario)}]" for scenario in SCENARIOS)
        raise CommandError(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")


def _check_internal_topics(arguments: argparse.Namespace) -> None:
    executes = arguments.reset_offsets and arguments.execute
    if arguments.delete_all_internal_topics and not (executes or arguments.delete):
        raise CommandError(
            "Option [delete-all-internal-topics] takes [reset-offsets] when [execute] is used, or [delete]."
        )
    if arguments.delete_internal_topic and not executes:
        raise CommandError("Option [delete-internal-topic] takes [reset-offsets] when [execute] is used.")


# --------------------------------------------------------------------------------------------------------- the actions


def _groups(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    if not arguments.all_groups:
        return list(dict.fromkeys(arguments.group))
    return [group.group_id for group in admin.list_groups(types=("streams",))]


def _list(admin: Admin, arguments: argparse.Namespace) -> int:
    states = parse_names("state", arguments.state, _STATES)
    groups = admin.list_groups(states=states, types=("streams",))
    if arguments.state is None:
        for group in groups:
            print(group.group_id)
        return 0
    width = max([15, *(len(group.group_id) for group in groups)])
    print(f"{'GROUP':<{width}} STATE")
    for group in groups:
        print(f"{group.group_id:<{width}} {group.state or 'Unknown'}")
    return 0


def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    return describe(admin, arguments, _groups(admin, arguments))


def _delete(admin: Admin, arguments: argparse.Namespace) -> int:
    group_ids = _groups(admin, arguments)
    states = {group.group_id: group.state for group in admin.list_groups(types=("streams",))}
    failed = {group_id: fault for group_id in group_ids if (fault := _fault(group_id, states.get(group_id)))}
    left = [group_id for group_id in group_ids if group_id not in failed]
    topics = internal_topics(admin, left) if left and arguments.delete_all_internal_topics else {}
    outcome = admin.delete_groups(left) if left else {}
    failed |= {group_id: java_text(refused) for group_id, refused in outcome.items() if refused is not None}
    deleted = in_hash_order(group_id for group_id, refused in outcome.items() if refused is None)
    names = "', '".join(deleted)
    if failed:
        print("\nError: Deletion of some streams groups failed:")
        for group_id in in_hash_order(failed):
            print(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}")
        if deleted:
            print(f"\nThese streams groups were deleted successfully: '{names}'.")
    else:
        print(f"Deletion of requested streams groups ('{names}') was successful.")
    delete_with_groups(admin, topics, deleted)
    return 0


def _fault(group_id: str, state: str | None) -> str | None:
    """Return why a group cannot be deleted, as Java prints the exception."""
    if state is None:
        words = f"Group '{group_id}' does not exist or is not a streams group."
        return f"java.lang.IllegalArgumentException: {words}"
    if state == "Dead":
        return f"java.lang.IllegalStateException: Streams group '{group_id}' group state is DEAD."
    if state != "Empty":
        words = f"Streams group '{group_id}' is not EMPTY."
        return f"org.apache.kafka.common.errors.GroupNotEmptyException: {words}"
    return None


class _StreamsReset(Reset):
    """The reset of one streams group: its partitions are those of input topics with committed offsets."""

    def chosen_partitions(self) -> list[TopicPartition]:
        """Return the partitions whose offsets are reset."""
        options = self.arguments
        if options.all_input_topics:
            group = self.admin.describe_streams_groups([self.group_id])[self.group_id]
            inputs = source_topics(group, repartition=False)
            return [partition for partition in self.committed() if partition.topic in inputs]
        partitions = self.existing(self.named(options.input_topic))
        committed = self.committed()
        if all(partition in committed for partition in partitions):
            return partitions
        print(f"\nError: One or more topics are not part of the group '{self.group_id}'.")
        return []


def _reset_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    plan: Plan = {}
    for group_id in _groups(admin, arguments):
        state = _state_of(admin, group_id)
        if state not in _INACTIVE:
            print(
                f"\nError: Assignments can only be reset if the group '{group_id}' is inactive, but the current "
                f"state is {state}."
            )
            plan[group_id] = {}
            continue
        offsets = plan[group_id] = in_java_order(_StreamsReset(admin, arguments, group_id).plan())
        if arguments.execute and offsets:
            admin.alter_group_offsets(group_id, offsets)
        if arguments.execute:
            _delete_topics_of(admin, arguments, group_id)
    if arguments.export:
        print_csv(plan, with_group=len(arguments.group) != 1)
    else:
        _print_plan(plan)
    return 0


def _state_of(admin: Admin, group_id: str) -> str:
    """Return the state of a group; a group that does not exist is dead, and can be given offsets."""
    try:
        return admin.describe_streams_groups([group_id])[group_id].state
    except BrokerError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return "Dead"


def _delete_topics_of(admin: Admin, arguments: argparse.Namespace, group_id: str) -> None:
    names = arguments.delete_internal_topic
    if arguments.delete_all_internal_topics:
        names = internal_topics(admin, [group_id]).get(group_id, [])
    if names:
        delete_after_reset(admin, group_id, names)


def _print_plan(plan: Plan) -> None:
    """Print the table. Its columns have fixed widths, unlike those of consumer groups."""
    rows = [("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET")] if plan else []
    rows += [
        (group_id, partition.topic, str(partition.partition), str(offset))
        for group_id in in_hash_order(plan)
        for partition, offset in plan[group_id].items()
    ]
    for group_id, topic, index, offset in rows:
        print(f"\n{group_id:<30} {topic:<30} {index:<10} {offset:<15}", end="")
    print()


def _delete_offsets(admin: Admin, arguments: argparse.Namespace) -> int:
    group_id = arguments.group[0]
    if arguments.all_input_topics:
        group = admin.describe_streams_groups([group_id])[group_id]
        inputs = source_topics(group, repartition=False)
        committed = admin.list_group_offsets(group_id)
        delete_offsets(admin, group_id, [partition for partition in committed if partition.topic in inputs], {})
    else:
        partitions, missing = parse_topics(admin, arguments.input_topic)
        delete_offsets(admin, group_id, partitions, missing)
    return 0


_DO = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset_offsets,
    "delete_offsets": _delete_offsets,
}
