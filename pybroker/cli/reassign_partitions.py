"""`pybroker reassign-partitions`: replicas and their log directories, with the output of kafka-reassign-partitions.

Owns the order of the requests, and the output, which are those of Kafka 4.3's tool. Must not know the protocol: it uses
Admin, and works with any Kafka.

`reassignment_plan` implements --generate, `reassignment_throttles` the throttles. Controllers
(`--bootstrap-controller`) do not know log directories: as in Kafka's tool they serve only --list and --cancel.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_node_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json, refuse_json
from pybroker.cli.kafka_exceptions import java_text, java_words
from pybroker.cli.reassignment_file import Plan, build_file, check_executable, name_of, parse_plan
from pybroker.cli.reassignment_plan import generate, replicas_of
from pybroker.cli.reassignment_throttles import (
    RUN_VERIFY,
    clear_throttles,
    moves,
    throttle_directories,
    throttle_replication,
)
from pybroker.cli.text_files import read_text
from pybroker.client.administration.log_dirs import Replica
from pybroker.client.administration.topics import Reassignment, TopicPartition
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Mapping

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Move partitions to other brokers, or replicas to other log directories. Options and output are those of "
    "kafka-reassign-partitions."
)

JSON = {
    "--list": [
        {
            "topic": "string",
            "partition": "integer",
            "replicas": ["integer"],
            "addingReplicas": ["integer"],
            "removingReplicas": ["integer"],
        }
    ]
}
_FIXED = "disallow-replication-factor-change"
_OPTIONS = {
    "generate": {"topics-to-move-json-file", "broker-list", "disable-rack-aware"},
    "execute": {
        "reassignment-json-file",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "additional",
        "timeout",
        _FIXED,
    },
    "verify": {"reassignment-json-file", "preserve-throttles"},
    "cancel": {"reassignment-json-file", "preserve-throttles", "timeout", "bootstrap-controller"},
    "list": {"bootstrap-controller"},
}
_REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_TIMEOUT_MS = 10_000
_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this and create a "
    "new partition assignment in addition to the existing one. The --additional flag can also be used to change the "
    "throttle by resubmitting the current reassignment."
)
_PAUSE_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_node_options(parser)
    action = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("generate", "propose a reassignment for the topics of a file"),
        ("execute", "start the reassignments of the file"),
        ("verify", "print the progress of the reassignments; remove the throttles when they are complete"),
        ("cancel", "cancel the reassignments of the file that are in progress, and remove the throttles"),
        ("list", "list the reassignments in progress"),
    ):
        action.add_argument(f"--{name}", action="store_const", const=name, dest="action", help=what)
    parser.add_argument(
        "--reassignment-json-file",
        type=Path,
        metavar="FILE",
        help='replicas: {"version": 1, "partitions": [{"topic": "foo", "partition": 1, "replicas": [1], '
        '"log_dirs": ["/data"]}]}; without log_dirs, or with "any", the broker chooses',
    )
    parser.add_argument(
        "--topics-to-move-json-file",
        type=Path,
        metavar="FILE",
        help='with --generate: topics: {"version": 1, "topics": [{"topic": "foo"}, {"topic": "foo1"}]}',
    )
    parser.add_argument("--broker-list", metavar="IDS", help="with --generate: the target brokers, such as 0,1,2")
    parser.add_argument("--disable-rack-aware", action="store_true", help="with --generate: ignore racks")
    parser.add_argument(
        "--throttle",
        type=int,
        metavar="BYTES",
        help="with --execute: maximum bytes per second of moves into each broker, and out of it; below 0: unchanged",
    )
    parser.add_argument(
        "--additional",
        action="store_true",
        help="with --execute: allow it while other reassignments are in progress, or change their throttle",
    )
    parser.add_argument(
        f"--{_FIXED}",
        action="store_true",
        help="with --execute: refuse a change of the number of replicas",
    )
    parser.add_argument(
        "--timeout",
        type=int,
        metavar="MS",
        help=f"maximum wait for moves between log directories to start, in ms ({_TIMEOUT_MS})",
    )
    parser.add_argument(
        "--replica-alter-log-dirs-throttle",
        type=int,
        metavar="BYTES",
        help="with --execute: maximum bytes per second that a broker copies between its log directories; "
        "below 0: unchanged",
    )
    parser.add_argument(
        "--preserve-throttles", action="store_true", help="with --verify and --cancel: keep the throttles"
    )
    add_json_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Execute the action, print the output of Kafka's tool, and return 0."""
    _check_options(arguments)
    plan = _plan(arguments)
    preserve = arguments.preserve_throttles
    timeout_s = (_TIMEOUT_MS if arguments.timeout is None else arguments.timeout) / 1000
    try:
        with open_admin(arguments) as admin:
            if arguments.action == "generate":
                topics = read_text(arguments.topics_to_move_json_file)
                generate(admin, topics, arguments.broker_list, rack_aware=not arguments.disable_rack_aware)
            elif arguments.action == "execute":
                throttles = (arguments.throttle, arguments.replica_alter_log_dirs_throttle)
                _execute(
                    admin,
                    plan,
                    throttles,
                    timeout_s,
                    additional=arguments.additional,
                    resizes=not arguments.disallow_replication_factor_change,
                )
            elif arguments.action == "verify":
                _verify(admin, plan, preserve=preserve)
            elif arguments.action == "cancel":
                _cancel(admin, plan, timeout_s, preserve=preserve)
            elif arguments.json:
                print_json(build_document(admin.list_partition_reassignments()))
            else:
                print(listed(admin.list_partition_reassignments()))
    except BrokerError as error:
        raise CommandError(java_text(error)) from None
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    return 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Reject options that exclude the action. Raises CommandError with the message of Kafka's tool."""
    given = {
        "bootstrap-controller": arguments.bootstrap_controller is not None,
        "topics-to-move-json-file": arguments.topics_to_move_json_file is not None,
        "broker-list": arguments.broker_list is not None,
        "disable-rack-aware": arguments.disable_rack_aware,
        "reassignment-json-file": arguments.reassignment_json_file is not None,
        "throttle": arguments.throttle is not None,
        "additional": arguments.additional,
        _FIXED: arguments.disallow_replication_factor_change,
        "timeout": arguments.timeout is not None,
        "replica-alter-log-dirs-throttle": arguments.replica_alter_log_dirs_throttle is not None,
        "preserve-throttles": arguments.preserve_throttles,
    }
    if arguments.action != "list":
        refuse_json(arguments, "--list")
    for option, is_given in given.items():
        if is_given and option not in _OPTIONS[arguments.action]:
            raise CommandError(f'Option "[{option}]" can\'t be used with action "[{arguments.action}]"')
    for option in _REQUIRED[arguments.action]:
        if not given[option]:
            raise CommandError(f'Missing required argument "[{option}]"')


def _plan(arguments: argparse.Namespace) -> Plan:
    """Return the plan in the file, an empty one without a file. Raises CommandError."""
    if arguments.reassignment_json_file is None:
        return Plan((), {})
    plan = parse_plan(read_text(arguments.reassignment_json_file))
    if arguments.action == "execute":
        check_executable(plan)
    return plan


def build_document(reassignments: Mapping[TopicPartition, Reassignment]) -> list[dict[str, object]]:
    """Return the document of `--list --json`."""
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(one.replicas),
            "addingReplicas": list(one.adding),
            "removingReplicas": list(one.removing),
        }
        for partition, one in sorted(reassignments.items(), key=lambda item: _order(item[0]))
    ]


def listed(reassignments: Mapping[TopicPartition, Reassignment]) -> str:
    """Return the output of --list."""
    lines = []
    for partition, one in sorted(reassignments.items(), key=lambda item: _order(item[0])):
        adding = f" adding: {_joined(one.adding)}." if one.adding else ""
        removing = f" removing: {_joined(one.removing)}." if one.removing else ""
        lines.append(f"{name_of(partition)}: replicas: {_joined(one.replicas)}.{adding}{removing}")
    return "\n".join(["Current partition reassignments:", *lines] if lines else ["No partition reassignments found."])


def _execute(
    admin: Admin,
    plan: Plan,
    throttles: tuple[int | None, int | None],
    timeout_s: float,
    *,
    additional: bool,
    resizes: bool,
) -> None:
    """Start the reassignments of the plan; `resizes` allows a change of the number of replicas."""
    ongoing = admin.list_partition_reassignments()
    if ongoing and not additional:
        raise CommandError(_EXISTING)
    there = {broker.node_id for broker in admin.describe_cluster().brokers}
    lost = [broker for _, replicas in plan.targets for broker in replicas if broker not in there]
    if lost:
        raise CommandError(f"Unknown broker id {lost[0]}")
    standing = _standing(admin, [partition for partition, _ in plan.targets])
    replicas = [Replica(partition, broker) for partition in standing for broker in standing[partition]]
    current = {replica: path for replica, (path, _) in _places(admin, replicas, there).items() if path is not None}
    rollback = "Save this to use as the --reassignment-json-file option during rollback"
    print(f"Current partition replica assignment\n\n{build_file(standing, current)}\n\n{rollback}")
    rate, move_rate = (-1 if throttle is None else throttle for throttle in throttles)
    if rate >= 0 or move_rate >= 0:
        print(RUN_VERIFY)
    if rate >= 0:
        throttle_replication(admin, moves(ongoing, plan.targets, standing), rate)
    if move_rate >= 0:
        throttle_directories(admin, (replica.broker for replica in plan.paths), move_rate)
    refusals = admin.alter_partition_reassignments(dict(plan.targets), allow_replication_factor_change=resizes)
    _refuse(refusals, "Error reassigning partition(s):")
    begun = sorted((partition for partition, _ in plan.targets), key=_order)
    print(f"Successfully started partition reassignment{_s(begun)} for {','.join(map(name_of, begun))}")
    if plan.paths:
        _move(admin, plan.paths, timeout_s)


def _verify(admin: Admin, plan: Plan, *, preserve: bool) -> None:
    ongoing = admin.list_partition_reassignments()
    print("Status of partition reassignment:")
    for partition, target in sorted(dict(plan.targets).items(), key=lambda item: _order(item[0])):
        print(_status(partition, target, () if partition in ongoing else _replicas(admin, partition), ongoing))
    there = {broker.node_id for broker in admin.describe_cluster().brokers}
    places = _places(admin, plan.paths, there)
    print("\n".join(_move_status(replica, plan.paths[replica], *places[replica]) for replica in _sorted(plan.paths)))
    moving = any(future is not None for _, future in places.values())
    if not ongoing and not moving and not preserve:
        _clear_throttles(admin, plan, there)


def _cancel(admin: Admin, plan: Plan, timeout_s: float, *, preserve: bool) -> None:
    ongoing = sorted(admin.list_partition_reassignments([partition for partition, _ in plan.targets]), key=_order)
    if ongoing:
        refusals = admin.alter_partition_reassignments(dict.fromkeys(ongoing))
        failed = [refusal for refusal in refusals.values() if refusal is not None]
        _refuse(refusals, f"Error cancelling partition reassignment{_s(failed)} for:")
        names = ",".join(map(name_of, ongoing))
        print(f"Successfully cancelled partition reassignment{_s(ongoing)} for: {names}")
    else:
        print("None of the specified partition reassignments are active.")
    there = {broker.node_id for broker in admin.describe_cluster().brokers}
    places = _places(admin, plan.paths, there)
    back = {replica: path for replica, (path, future) in places.items() if path is not None and future is not None}
    if back:
        _move(admin, back, timeout_s)
    else:
        print("None of the specified partition moves are active.", end="")
    if not preserve:
        _clear_throttles(admin, plan, there)


def _standing(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of partitions, in order. Raises CommandError for a missing partition."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    wanted = sorted(partitions, key=_order)
    for name in dict.fromkeys(partition.topic for partition in wanted):
        found.update(replicas_of(admin, name))
    missing = [name_of(partition) for partition in wanted if partition not in found]
    if missing:
        raise CommandError(f"Unable to find partition: {', '.join(missing)}")
    return {partition: found[partition] for partition in wanted}


def _replicas(admin: Admin, partition: TopicPartition) -> tuple[int, ...]:
    """Return the replicas of a partition; none for a missing one."""
    try:
        return _standing(admin, [partition])[partition]
    except CommandError:
        return ()


def _status(
    partition: TopicPartition,
    target: Collection[int],
    replicas: tuple[int, ...],
    ongoing: Mapping[TopicPartition, Reassignment],
) -> str:
    if partition in ongoing:
        return f"Reassignment of partition {name_of(partition)} is still in progress."
    if replicas == tuple(target):
        return f"Reassignment of partition {name_of(partition)} is completed."
    return (
        f"There is no active reassignment of partition {name_of(partition)}, but replica set is {_joined(replicas)} "
        f"rather than {_joined(target)}."
    )


def _places(
    admin: Admin, replicas: Iterable[Replica], there: Collection[int]
) -> dict[Replica, tuple[str | None, str | None]]:
    """Return the current and the future log directory of replicas; None for a missing one."""
    places: dict[Replica, tuple[str | None, str | None]] = dict.fromkeys(replicas, (None, None))
    if not places:
        return places
    for broker, directories in admin.describe_log_dirs(sorted({one.broker for one in places} & set(there))).items():
        for path, directory in directories.items():
            for partition, info in directory.replicas.items():
                replica = Replica(partition, broker)
                if replica in places:
                    current, future = places[replica]
                    places[replica] = (current, path) if info.is_future else (path, future)
    return places


def _move_status(replica: Replica, target: str, current: str | None, future: str | None) -> str:
    partition = f"Partition {name_of(replica.partition)}"
    if current is None:
        return (
            f"{partition} is not found in any live log dir on broker {replica.broker}. There is likely an offline log "
            "directory on the broker."
        )
    if future == target:
        return f"Reassignment of replica {_replica_name(replica)} is still in progress."
    if future is not None:
        return f"{partition} on broker {replica.broker} is being moved to log dir {future} instead of {target}."
    if current == target:
        return f"Reassignment of replica {_replica_name(replica)} completed successfully."
    return f"{partition} on broker {replica.broker} is not being moved from log dir {current} to {target}."


def _move(admin: Admin, paths: Mapping[Replica, str], timeout_s: float) -> None:
    """Move replicas to log directories, existing ones first, and wait for the others. Raises CommandError."""
    pending = dict(paths)
    deadline = time.monotonic() + timeout_s
    while True:
        outcomes = admin.alter_replica_log_dirs(pending)
        for replica, refusal in outcomes.items():
            if refusal is not None and refusal.code is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise CommandError(f"Failed to alter dir for {_replica_name(replica)}: {java_text(refusal)}")
        for replica in _sorted(replica for replica, refusal in outcomes.items() if refusal is None):
            name, path = replica.partition, pending.pop(replica)
            # The blank at the end is Kafka's.
            print(
                f"Successfully started moving log directory to {path} for replica {name_of(name)} with broker "
                f"{replica.broker} "
            )
        if not pending:
            return
        if time.monotonic() >= deadline:
            names = ",".join(map(_replica_name, _sorted(pending)))
            raise CommandError(f"Timed out before log directory move{_s(pending)} could be started for: {names}")
        time.sleep(_PAUSE_S)


def _clear_throttles(admin: Admin, plan: Plan, there: Iterable[int]) -> None:
    brokers = sorted({*there, *(broker for _, replicas in plan.targets for broker in replicas)})
    clear_throttles(admin, brokers, (partition.topic for partition, _ in plan.targets))


def _refuse(refusals: Mapping[TopicPartition, BrokerError | None], what: str) -> None:
    """Raise CommandError where a partition was rejected, with the error of each."""
    lines = [
        f"{name_of(partition)}: {java_words(refusal)}"
        for partition, refusal in sorted(refusals.items(), key=lambda item: _order(item[0]))
        if refusal is not None
    ]
    if lines:
        raise CommandError("\n".join([what, *lines]))


def _sorted(replicas: Iterable[Replica]) -> list[Replica]:
    return sorted(replicas, key=lambda replica: (replica.broker, *_order(replica.partition)))


def _order(partition: TopicPartition) -> tuple[str, int]:
    return partition.topic, partition.partition


def _replica_name(replica: Replica) -> str:
    return f"{name_of(replica.partition)}-{replica.broker}"


def _joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _s(some: Collection[object]) -> str:
    return "" if len(some) == 1 else "s"
