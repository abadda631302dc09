"""`pybroker consumer-groups`: list, describe, reset and delete consumer groups, as kafka-consumer-groups does.

Owns option names and their exclusions, which are those of Kafka 4.3's tool, and the short actions.
`consumer_groups_describe` describes groups, `consumer_groups_reset` resets offsets. Works with any Kafka, by Admin
only.

Not done: `--validate-regex`; Java's stack traces under an error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.consumer_groups_describe import DESCRIBED, describe
from pybroker.cli.consumer_groups_reset import parse_topics, plan_reset, print_csv, print_plan
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_message, java_text
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.errors import BrokerError, ClientError, SettingError
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "List all consumer groups, describe a consumer group, delete consumer group info, or reset consumer group offsets. "
    "Options and output are those of kafka-consumer-groups."
)
JSON = {"--list": [{"group": "string", "type": "string", "state": "string"}], "--describe": [DESCRIBED]}
_ACTIONS = ("list", "describe", "delete", "reset_offsets", "delete_offsets")
SCENARIOS = (
    *("to_offset", "to_datetime", "by_duration", "to_earliest", "to_latest", "to_current", "shift_by", "from_file"),
)
"""The options that determine the new offsets; one is required."""
_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")
_TYPES = ("Classic", "Consumer")
LONGEST_TIMEOUT_MS = 2**31 - 1
"""Maximum of `--timeout`."""
_NO_ACTION = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add, flag = parser.add_argument, "store_true"
    add_cluster_options(parser, properties=True, required=False)
    add("--list", action=flag, help="list all consumer groups")
    add("--describe", action=flag, help="describe groups: members, offsets and lag")
    add("--delete", action=flag, help="delete groups and their offsets")
    add("--reset-offsets", action=flag, help="reset the offsets of inactive groups")
    add("--delete-offsets", action=flag, help="delete offsets of a group")
    add("--group", action="append", default=[], metavar="GROUP", help="a group to act on; may be repeated")
    add("--all-groups", action=flag, help="act on all consumer groups")
    add("--topic", action="append", default=[], metavar="TOPIC[:N,N]", help="a topic, or some of its partitions")
    add("--all-topics", action=flag, help="with --reset-offsets: all topics with committed offsets")
    add(
        "--state",
        nargs="?",
        const="",
        metavar="STATES",
        help="with --describe: the state of groups; with --list: states, or only groups in STATES",
    )
    add("--type", nargs="?", const="", metavar="TYPES", help="with --list: types, or only groups of TYPES")
    add("--members", action=flag, help="with --describe: the members")
    add("--offsets", action=flag, help="with --describe: offsets and lag (default)")
    add("--verbose", action=flag, help="with --describe: more columns")
    add("--timeout", type=int, default=30_000, metavar="MS", help="request timeout (default: 30000)")
    add_json_option(parser)
    add_reset(parser)


def add_reset(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `--reset-offsets`."""
    add, flag = parser.add_argument, "store_true"
    add("--dry-run", action=flag, help="with --reset-offsets: print the new offsets without setting them (default)")
    add("--execute", action=flag, help="with --reset-offsets: set the new offsets")
    add("--export", action=flag, help="with --reset-offsets: print the new offsets as CSV")
    add("--to-offset", type=int, metavar="OFFSET", help="reset to an offset")
    add("--to-datetime", metavar="TIME", help="reset to a time: YYYY-MM-DDThh:mm:ss.sss")
    add("--by-duration", metavar="DURATION", help="reset to the current time minus a duration: PnDTnHnMnS")
    add("--to-earliest", action=flag, help="reset to the first offset")
    add("--to-latest", action=flag, help="reset to the log end offset")
    add("--to-current", action=flag, help="reset to the current offset")
    add("--shift-by", type=int, metavar="N", help="shift offsets by N, forwards or (negative) backwards")
    add("--from-file", type=Path, metavar="FILE", help="reset to the offsets of a CSV file")


def run(arguments: argparse.Namespace) -> int:
    """Execute the action and return 0."""
    action = _check(arguments)
    if action not in ("list", "describe"):
        refuse_json(arguments, "--list and --describe")
    try:
        limits = {"request.timeout.ms": arguments.timeout, "default.api.timeout.ms": arguments.timeout}
        with open_admin(arguments, limits) as admin:
            _DO[action](admin, arguments)
    except ConfigError as error:
        raise CommandError(str(error), 2) from None
    except SettingError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise CommandError(f"Error: Executing consumer group command failed due to {java_text(error)}") from None
    return 0


# --------------------------------------------------------------------------------------------------------- the options


def _check(arguments: argparse.Namespace) -> str:
    """Reject options as Kafka's tool does, and return the action."""
    chosen = [action for action in _ACTIONS if getattr(arguments, action)]
    if len(chosen) != 1:
        names = ", ".join(f"--{dashed(action)}" for action in _ACTIONS)
        raise CommandError(f"Command must include exactly one action: {names}")
    (action,) = chosen
    if not 1 <= arguments.timeout <= LONGEST_TIMEOUT_MS:
        raise CommandError(f"--timeout {arguments.timeout}: expected milliseconds from 1 to {LONGEST_TIMEOUT_MS}")
    if arguments.bootstrap_server is None:
        raise CommandError('Missing required argument "[bootstrap-server]"')
    if action in ("describe", "delete", "reset_offsets") and not arguments.group and not arguments.all_groups:
        raise CommandError(f"Option [{dashed(action)}] takes one of these options: [group], [all-groups]")
    if action == "describe":
        _check_describe(arguments)
    if action == "delete" and arguments.topic:
        raise CommandError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if action == "delete_offsets" and not (arguments.group and arguments.topic):
        raise CommandError("Option [delete-offsets] takes the following options: [group], [topic]")
    if action == "reset_offsets":
        _check_reset(arguments)
    if arguments.group:
        exclude(arguments, "group", ("all_groups", "list"))
    if arguments.topic:
        exclude(arguments, "topic", ("list", "describe"))
    return action


def _check_describe(arguments: argparse.Namespace) -> None:
    if arguments.members + arguments.offsets + (arguments.state is not None) > 1:
        raise CommandError("Option [describe] takes at most one of these options: [members], [offsets], [state]")
    if arguments.state:
        raise CommandError("Option [describe] does not take a value for [state]")


def _check_reset(arguments: argparse.Namespace) -> None:
    if arguments.dry_run and arguments.execute:
        raise CommandError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not arguments.dry_run and not arguments.execute:
        print(_NO_ACTION, file=sys.stderr)
    for scenario in SCENARIOS:
        if is_given(arguments, scenario):
            exclude(arguments, scenario, [other for other in SCENARIOS if other != scenario])
    if not any(is_given(arguments, scenario) for scenario in SCENARIOS):
        names = ", ".join(f"[{dashed(scenario)}]" for scenario in SCENARIOS)
        raise CommandError(f"Option '[reset-offsets]' requires one of the following scenarios: [{names}]")
    if not arguments.all_topics and not arguments.topic and arguments.from_file is None:
        raise CommandError("One of the reset scopes should be defined: --all-topics, --topic.")


def is_given(arguments: argparse.Namespace, option: str) -> bool:
    """Return whether an option is on the command line."""
    return getattr(arguments, option) not in (None, False, [])


def exclude(arguments: argparse.Namespace, option: str, others: Sequence[str]) -> None:
    """Raise CommandError if one of the others is given too."""
    for other in others:
        if is_given(arguments, other):
            raise CommandError(f'Option "[{dashed(option)}]" can\'t be used with option "[{dashed(other)}]"')


def dashed(option: str) -> str:
    """Return the spelling of an option without its dashes in front."""
    return option.replace("_", "-")


# --------------------------------------------------------------------------------------------------------- the actions


def consumer_groups(admin: Admin) -> list[str]:
    """Return the ids of all consumer groups, including those that only store offsets."""
    return [group.group_id for group in admin.list_groups(protocol_types=("consumer", ""))]


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    if arguments.json:
        states, types = parse_names("state", arguments.state, _STATES), parse_names("types", arguments.type, _TYPES)
        listed = admin.list_groups(states=states, types=types, protocol_types=("consumer", ""))
        print_json([{"group": one.group_id, "type": one.type.lower(), "state": one.state} for one in listed])
        return
    if arguments.state is None and arguments.type is None:
        for group_id in consumer_groups(admin):
            print(group_id)
        return
    states = parse_names("state", arguments.state, _STATES)
    types = parse_names("types", arguments.type, _TYPES)
    groups = admin.list_groups(states=states, types=types, protocol_types=("consumer", ""))
    width = max([15, *(len(group.group_id) for group in groups)]) + 10
    rows = [("GROUP", "TYPE", "STATE")]
    rows += [(g.group_id, g.type.capitalize() or "Unknown", g.state or "Unknown") for g in groups]
    for group_id, kind, state in rows:
        columns = [f"{group_id:<{width}}"]
        columns += [f"{kind:<20}"] if arguments.type is not None else []
        columns += [f"{state:<20}"] if arguments.state is not None else []
        print(" ".join(columns))


def parse_names(what: str, text: str | None, known: Sequence[str]) -> list[str]:
    """Return the names in a comma-separated list, in Kafka's spelling; none without a list. Raises CommandError."""
    if not text:
        return []
    by_name = {name.lower(): name for name in known}
    names = [part.strip() for part in text.split(",")]
    if any(name.lower() not in by_name for name in names):
        raise CommandError(f"Invalid {what} list '{text}'. Valid {what.rstrip('s')}s are: {', '.join(known)}")
    return [by_name[name.lower()] for name in names]


def _groups(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    return consumer_groups(admin) if arguments.all_groups else list(dict.fromkeys(arguments.group))


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    describe(admin, arguments, _groups(admin, arguments))


def _delete(admin: Admin, arguments: argparse.Namespace) -> None:
    outcome = admin.delete_groups(_groups(admin, arguments))
    deleted = ", ".join(f"'{group_id}'" for group_id, refused in outcome.items() if refused is None)
    if not any(outcome.values()):
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group_id, refused in outcome.items():
        if refused is not None:
            print(f"* Group '{group_id}' could not be deleted due to: {java_text(refused)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def _reset_offsets(admin: Admin, arguments: argparse.Namespace) -> None:
    plan = plan_reset(admin, arguments, _groups(admin, arguments))
    if arguments.execute:
        for group_id, offsets in plan.items():
            if offsets:
                admin.alter_group_offsets(group_id, offsets)
    if arguments.export:
        print_csv(plan, with_group=len(arguments.group) != 1)
    else:
        print_plan(plan)


def _delete_offsets(admin: Admin, arguments: argparse.Namespace) -> None:
    partitions, missing = parse_topics(admin, arguments.topic)
    delete_offsets(admin, arguments.group[0], partitions, missing)


def delete_offsets(
    admin: Admin, group_id: str, partitions: Sequence[TopicPartition], missing: Mapping[str, BrokerError]
) -> None:
    """Delete offsets of a group, and print the outcome of each partition; `missing` are the errors of topics."""
    refusals: dict[TopicPartition, BrokerError | None] = {TopicPartition(t, -1): e for t, e in missing.items()}
    top: ErrorCode | None = None
    try:
        outcome = admin.delete_group_offsets(group_id, partitions)
        top = next((refused.code for refused in outcome.values() if refused is not None), None)
        refusals |= outcome
    except BrokerError as error:
        top = error.code
        refusals |= dict.fromkeys(partitions, error)
    _report_deleted(group_id, top)
    width = max([15, *(len(partition.topic) for partition in refusals)])
    print(f"\n{'TOPIC':<{width}} {'PARTITION':<10} {'STATUS':<15}", end="")
    for partition in sorted(refusals, key=lambda p: f"{p.topic}{p.partition}"):
        refused = refusals[partition]
        status = "Successful" if refused is None else f"Error: {java_text(refused)}"
        index = "-" if partition.partition < 0 else str(partition.partition)
        print(f"\n{partition.topic:<{width}} {index:<10} {status:<15}", end="")
    print()


def _report_deleted(group_id: str, top: ErrorCode | None) -> None:
    partition_level = (
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
    group_level = (
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NON_EMPTY_GROUP,
    )
    if top is None:
        print(f"Request succeeded for deleting offsets from group {group_id}.")
    elif top in group_level:
        print(f"\nError: {java_message(top)}")
    elif top in partition_level:
        print("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"\nError: Encountered some unknown error: {top.name}")


_DO = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset_offsets": _reset_offsets,
    "delete_offsets": _delete_offsets,
}
