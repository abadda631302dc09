"""`pybroker reassign-partitions`: replicas and their log directories, with the output of kafka-reassign-partitions.

Owns the order of what is asked, and the output, which are those of Kafka 4.3's tool. Must not know the protocol: it
asks by Admin, and works against any Kafka.

Not done: `--generate`, `--throttle`, `--additional`, `--timeout` and `--disallow-replication-factor-change`. A
reassignment in progress keeps another one from being executed.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.kafka_exceptions import java_text, java_words
from pybroker.cli.reassignment_file import Plan, build_file, check_executable, name_of, parse_plan
from pybroker.cli.text_files import read_text
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.java.hash_order import HashOrderedSet, string_hash
from pybroker.client.log_dirs import Replica
from pybroker.client.topics import BROKER, DELETE, SET, TOPIC, ConfigChange, Reassignment, TopicPartition
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Mapping

    from pybroker.client.admin import Admin

DESCRIPTION = (
    "Give partitions other replicas, or replicas another log directory. Options and output are those of "
    "kafka-reassign-partitions."
)

_MOVE_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
_BROKER_THROTTLES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate", _MOVE_THROTTLE)
_TOPIC_THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_OPTIONS = {
    "execute": {"reassignment-json-file", "replica-alter-log-dirs-throttle"},
    "verify": {"reassignment-json-file", "preserve-throttles"},
    "cancel": {"reassignment-json-file", "preserve-throttles"},
    "list": set[str](),
}
_MOVES_TIMEOUT_S = 10.0
"""How long a replica that is not there yet is waited for (Kafka's default of --timeout)."""
_PAUSE_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser)
    action = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("execute", "begin what the file asks for"),
        ("verify", "show how far it is, and when it is done take every throttle away"),
        ("cancel", "end what is on its way of what the file asks for, and take every throttle away"),
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
        "--replica-alter-log-dirs-throttle",
        type=int,
        metavar="BYTES",
        help="with --execute: most bytes that each broker copies between its log directories in a second; below 0 "
        "leaves it as it is",
    )
    parser.add_argument(
        "--preserve-throttles", action="store_true", help="with --verify and --cancel: leave throttles as they are"
    )


def run(arguments: argparse.Namespace) -> int:
    """Do one of it, print what Kafka's tool prints, and return 0."""
    _check_options(arguments)
    plan = _plan(arguments)
    throttle, preserve = arguments.replica_alter_log_dirs_throttle, arguments.preserve_throttles
    try:
        with open_admin(arguments) as admin:
            if arguments.action == "execute":
                _execute(admin, plan, throttle)
            elif arguments.action == "verify":
                _verify(admin, plan, preserve=preserve)
            elif arguments.action == "cancel":
                _cancel(admin, plan, preserve=preserve)
            else:
                print(listed(admin.list_partition_reassignments()))
    except BrokerError as error:
        raise CommandError(java_text(error)) from None
    except (ClientError, ConfigError) as error:
        raise CommandError(str(error)) from None
    return 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go with the action; raises CommandError in the words of Kafka's tool."""
    given = {
        "reassignment-json-file": arguments.reassignment_json_file is not None,
        "replica-alter-log-dirs-throttle": arguments.replica_alter_log_dirs_throttle is not None,
        "preserve-throttles": arguments.preserve_throttles,
    }
    for option, is_given in given.items():
        if is_given and option not in _OPTIONS[arguments.action]:
            raise CommandError(f'Option "[{option}]" can\'t be used with action "[{arguments.action}]"')
    if arguments.action != "list" and arguments.reassignment_json_file is None:
        raise CommandError('Missing required argument "[reassignment-json-file]"')


def _plan(arguments: argparse.Namespace) -> Plan:
    """Return what the file asks for, nothing where none is named; raises CommandError."""
    if arguments.reassignment_json_file is None:
        return Plan((), {})
    plan = parse_plan(read_text(arguments.reassignment_json_file))
    if arguments.action == "execute":
        check_executable(plan)
    return plan


def listed(reassignments: Mapping[TopicPartition, Reassignment]) -> str:
    """Return what --list prints."""
    lines = []
    for partition, one in sorted(reassignments.items(), key=lambda item: _order(item[0])):
        adding = f" adding: {_joined(one.adding)}." if one.adding else ""
        removing = f" removing: {_joined(one.removing)}." if one.removing else ""
        lines.append(f"{name_of(partition)}: replicas: {_joined(one.replicas)}.{adding}{removing}")
    return "\n".join(["Current partition reassignments:", *lines] if lines else ["No partition reassignments found."])


def _execute(admin: Admin, plan: Plan, throttle: int | None) -> None:
    if admin.list_partition_reassignments():
        raise CommandError(
            "Cannot execute because there is an existing partition assignment: wait until --list shows none, or end "
            "it with --cancel"
        )
    there = {broker.node_id for broker in admin.describe_cluster().brokers}
    lost = [broker for _, replicas in plan.targets for broker in replicas if broker not in there]
    if lost:
        raise CommandError(f"Unknown broker id {lost[0]}")
    standing = _standing(admin, [partition for partition, _ in plan.targets])
    replicas = [Replica(partition, broker) for partition in standing for broker in standing[partition]]
    current = {replica: path for replica, (path, _) in _places(admin, replicas, there).items() if path is not None}
    rollback = "Save this to use as the --reassignment-json-file option during rollback"
    print(f"Current partition replica assignment\n\n{build_file(standing, current)}\n\n{rollback}")
    if throttle is not None and throttle >= 0:
        print(
            "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is "
            "removed."
        )
        for broker in sorted({replica.broker for replica in plan.paths}):
            admin.alter_configs(str(broker), [ConfigChange(_MOVE_THROTTLE, str(throttle), SET)], BROKER)
        print(f"The replica-alter-dir throttle limit was set to {throttle} B/s")
    _refuse(admin.alter_partition_reassignments(dict(plan.targets)), "Error reassigning partition(s):")
    begun = sorted((partition for partition, _ in plan.targets), key=_order)
    print(f"Successfully started partition reassignment{_s(begun)} for {','.join(map(name_of, begun))}")
    if plan.paths:
        _move(admin, plan.paths)


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


def _cancel(admin: Admin, plan: Plan, *, preserve: bool) -> None:
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
        _move(admin, back)
    else:
        print("None of the specified partition moves are active.", end="")
    if not preserve:
        _clear_throttles(admin, plan, there)


def _standing(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of partitions, in order; raises CommandError where one is not there."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    wanted = sorted(partitions, key=_order)
    for name in dict.fromkeys(partition.topic for partition in wanted):
        try:
            (topic,) = admin.describe_topics([name])
        except BrokerError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            raise CommandError(f"Topic {name} not found.") from None
        found.update((TopicPartition(name, part.index), part.replicas) for part in topic.partitions)
    missing = [name_of(partition) for partition in wanted if partition not in found]
    if missing:
        raise CommandError(f"Unable to find partition: {', '.join(missing)}")
    return {partition: found[partition] for partition in wanted}


def _replicas(admin: Admin, partition: TopicPartition) -> tuple[int, ...]:
    """Return the replicas of a partition; none where it is not there."""
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
    """Return where replicas lie, and where they are on their way to; None for what is not."""
    places: dict[Replica, tuple[str | None, str | None]] = dict.fromkeys(replicas, (None, None))
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


def _move(admin: Admin, paths: Mapping[Replica, str]) -> None:
    """Have replicas moved, those first that are there, and wait for the others; raises CommandError."""
    pending = dict(paths)
    deadline = time.monotonic() + _MOVES_TIMEOUT_S
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
    print(f"Clearing broker-level throttles on broker{_s(brokers)} {_joined(brokers)}")
    for broker in brokers:
        admin.alter_configs(str(broker), [ConfigChange(name, None, DELETE) for name in _BROKER_THROTTLES], BROKER)
    topics = list(HashOrderedSet(string_hash, (partition.topic for partition, _ in plan.targets)))
    print(f"Clearing topic-level throttles on topic{_s(topics)} {','.join(topics)}")
    for topic in topics:
        admin.alter_configs(topic, [ConfigChange(name, None, DELETE) for name in _TOPIC_THROTTLES], TOPIC)


def _refuse(refusals: Mapping[TopicPartition, BrokerError | None], what: str) -> None:
    """Raise CommandError where a partition was refused, with the words for each."""
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
