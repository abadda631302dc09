"""`pybroker transactions`: lists open transactions and aborts hanging ones, as kafka-transactions does.

Owns the option names, the definition of a hanging transaction, and the output format, as in Kafka 4.3's tool. Must not
know the protocol: it uses Admin, and works with any Kafka.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_words
from pybroker.cli.tables import table_lines
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.administration.transactions import NOTHING, ProducerState
from pybroker.client.errors import BrokerError, ClientError
from pybroker.config.errors import ConfigError
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

    from pybroker.client.administration.admin import Admin

DESCRIPTION = (
    "Analyze the transactional state of producers in the cluster: find and abort hanging transactions. "
    "Commands, options and output are those of kafka-transactions."
)

_MINUTE_MS = 60_000
_MINUTES = 15
_AT_ONCE = 500
"""Maximum partitions or topics of one request."""
_PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
_TRANSACTION = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
_LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


_TRANSACTION_SHAPE = {
    "coordinator": "integer",
    "transactionalId": "string",
    "producerId": "integer",
    "producerEpoch": "integer",
    "state": "string",
    "timeoutMs": "integer",
    "startMs": "integer|null",
    "durationMs": "integer|null",
    "partitions": ["string"],
}
JSON: dict[str, Any] = {
    "list": [{"transactionalId": "string", "coordinator": "integer", "producerId": "integer", "state": "string"}],
    "describe": _TRANSACTION_SHAPE,
    "describe-producers": [
        {
            "producerId": "integer",
            "producerEpoch": "integer",
            "coordinatorEpoch": "integer",
            "lastSequence": "integer",
            "lastTimestampMs": "integer",
            "startOffset": "integer|null",
        }
    ],
    "find-hanging": [
        {
            "topic": "string",
            "partition": "integer",
            "producerId": "integer",
            "producerEpoch": "integer",
            "coordinatorEpoch": "integer",
            "startOffset": "integer",
            "lastTimestampMs": "integer",
            "durationMinutes": "integer",
        }
    ],
}


class _Open(NamedTuple):
    """A transaction that has been open in a partition for a long time."""

    partition: TopicPartition
    producer: ProducerState


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options, and the subcommands with their options."""
    add_cluster_options(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(
        name: str, run: Callable[[Admin, argparse.Namespace], None], what: str, *aliases: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=what, description=what, aliases=aliases, allow_abbrev=False)
        added.set_defaults(do=run)
        return added

    listed = command("list", _list, "list transactions")
    listed.add_argument(
        "--duration-filter",
        type=int,
        default=NOTHING,
        metavar="MS",
        help="omit transactional ids whose transaction has been open for MS milliseconds or less",
    )
    listed.add_argument("--transactional-id-pattern", metavar="REGEX", help="only matching transactional ids")
    described = command("describe", _describe, "describe the state of an active transactional id")
    described.add_argument("--transactional-id", required=True, metavar="ID", help="the transactional id")
    producing = command("describe-producers", _describe_producers, "describe the producer state of a partition")
    producing.add_argument(
        "--broker-id", type=int, metavar="ID", help="the broker whose replica is described (default: the leader)"
    )
    _add_partition(producing, required=True)
    aborted = command("abort", _abort, "abort a hanging transaction in one partition")
    _add_partition(aborted, required=True)
    newer = aborted.add_argument_group("brokers of 3.0 and later", "the first offset identifies the transaction")
    newer.add_argument("--start-offset", type=int, metavar="OFFSET", help="first offset of the transaction")
    older = aborted.add_argument_group("older brokers", "all of these options are required")
    older.add_argument("--producer-id", type=int, metavar="ID", help="the producer's id")
    older.add_argument("--producer-epoch", type=int, metavar="EPOCH", help="the producer's epoch")
    older.add_argument("--coordinator-epoch", type=int, metavar="EPOCH", help="epoch of the coordinator; -1 for none")
    hanging = command("find-hanging", _find_hanging, "find hanging transactions")
    hanging.add_argument("--broker-id", type=int, metavar="ID", help="check the replicas of this broker")
    hanging.add_argument(
        "--max-transaction-timeout",
        type=int,
        default=_MINUTES,
        metavar="MINUTES",
        help=f"ignore transactions that are open for a shorter time (default: {_MINUTES})",
    )
    _add_partition(hanging, required=False)
    for one in (listed, described, producing, hanging):
        add_json_option(one)
    terminated = command(
        "force-terminate",
        _force_terminate,
        "abort the open transaction of a transactional id, and fence its producer",
        "forceTerminateTransaction",
    )
    terminated.add_argument(
        "--transactional-id", "--transactionalId", required=True, metavar="ID", help="the transactional id"
    )


def _add_partition(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--topic", required=required, help="the topic")
    parser.add_argument("--partition", type=int, required=required, metavar="N", help="the partition's number")


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return 0."""
    try:
        with open_admin(arguments) as admin:
            arguments.do(admin, arguments)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    except ClientError as error:
        raise CommandError(_words(error)) from None
    return 0


def _list(admin: Admin, arguments: argparse.Namespace) -> None:
    try:
        found = admin.list_transactions(
            longer_than_ms=arguments.duration_filter, pattern=arguments.transactional_id_pattern
        )
    except ClientError as error:
        _fail("Failed to list transactions", error)
    rows = ((one.transactional_id, one.coordinator, one.producer_id, one.state) for one in found)
    _show(arguments, _LISTED, rows, JSON["list"][0])


def _describe(admin: Admin, arguments: argparse.Namespace) -> None:
    transactional_id = arguments.transactional_id
    try:
        one = admin.describe_transactions([transactional_id])[transactional_id]
    except ClientError as error:
        _fail(f"Failed to describe transaction state of transactional-id `{transactional_id}`", error)
    row = (
        one.coordinator,
        transactional_id,
        one.producer_id,
        one.producer_epoch,
        one.state,
        one.timeout_ms,
        one.began_ms,
        None if one.began_ms is None else _now_ms() - one.began_ms,
        [_name(partition) for partition in one.partitions],
    )
    if arguments.json:
        print_json(dict(zip(_TRANSACTION_SHAPE, row, strict=True)))
    else:
        _show(arguments, _TRANSACTION, [(*row[:-1], ",".join(row[-1]))], _TRANSACTION_SHAPE)


def _describe_producers(admin: Admin, arguments: argparse.Namespace) -> None:
    partition, broker = TopicPartition(arguments.topic, arguments.partition), arguments.broker_id
    try:
        found = admin.describe_producers([partition], broker=broker)[partition]
    except ClientError as error:
        where = "leader" if broker is None else f"broker {broker}"
        _fail(f"Failed to describe producers for partition {_name(partition)} on {where}", error)
    rows = (
        (
            one.producer_id,
            one.producer_epoch,
            one.coordinator_epoch,
            one.last_sequence,
            one.last_timestamp_ms,
            None if one.transaction_start == NOTHING else one.transaction_start,
        )
        for one in found
    )
    _show(arguments, _PRODUCERS, rows, JSON["describe-producers"][0])


def _abort(admin: Admin, arguments: argparse.Namespace) -> None:
    partition = TopicPartition(arguments.topic, arguments.partition)
    if arguments.start_offset is not None:
        one = _open_at(admin, partition, arguments.start_offset)
        producer = one.producer_id, one.producer_epoch, one.coordinator_epoch
    elif arguments.producer_id is None:
        raise CommandError(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or "
            "with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    else:
        for option in ("producer_epoch", "coordinator_epoch"):
            if getattr(arguments, option) is None:
                raise CommandError(f"Missing required argument --{option.replace('_', '-')}")
        producer = arguments.producer_id, arguments.producer_epoch, arguments.coordinator_epoch
    try:
        admin.abort_transaction(partition, *producer)
    except ClientError as error:
        _fail(f"Failed to abort the transaction of producer {producer[0]} in partition {_name(partition)}", error)


def _open_at(admin: Admin, partition: TopicPartition, start: int) -> ProducerState:
    try:
        producers = admin.describe_producers([partition])[partition]
    except ClientError as error:
        _fail(f"Failed to validate producer state for partition {_name(partition)}", error)
    for one in producers:
        if one.transaction_start == start != NOTHING:
            return one
    raise CommandError(
        f"Could not find any open transactions starting at offset {start} on partition {_name(partition)}"
    )


def _force_terminate(admin: Admin, arguments: argparse.Namespace) -> None:
    try:
        admin.force_terminate_transaction(arguments.transactional_id)
    except ClientError as error:
        _fail(f"Failed to force terminate transactionalId `{arguments.transactional_id}`", error)


def _find_hanging(admin: Admin, arguments: argparse.Namespace) -> None:
    if arguments.topic is None and arguments.broker_id is None:
        raise CommandError(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if arguments.partition is not None and arguments.topic is None:
        raise CommandError("The --partition argument requires --topic to be provided")
    _check_broker(admin, arguments.broker_id)
    partitions = _partitions_to_search(admin, arguments)
    long_open = _open_for_long(admin, partitions, arguments)
    now_ms = _now_ms()
    rows = (
        (
            partition.topic,
            partition.partition,
            producer.producer_id,
            producer.producer_epoch,
            producer.coordinator_epoch,
            producer.transaction_start,
            producer.last_timestamp_ms,
            (now_ms - producer.last_timestamp_ms) // _MINUTE_MS,
        )
        for partition, producer in _without_coordinator(admin, long_open)
    )
    _show(arguments, _HANGING, rows, JSON["find-hanging"][0])


def _check_broker(admin: Admin, broker: int | None) -> None:
    """Raise CommandError for a broker that does not run: an empty result would look like no hanging transactions."""
    if broker is None:
        return
    known = sorted(node.node_id for node in admin.describe_cluster().brokers)
    if broker not in known:
        ids = ", ".join(map(str, known))
        raise CommandError(f"--broker-id {broker}: no such broker is running; the running brokers are {ids}")


def _partitions_to_search(admin: Admin, arguments: argparse.Namespace) -> list[TopicPartition]:
    if arguments.partition is not None:
        return [TopicPartition(arguments.topic, arguments.partition)]
    topics = [arguments.topic] if arguments.topic is not None else admin.list_topics(internal=True)
    broker = arguments.broker_id
    return [
        TopicPartition(topic.name, partition.index)
        for names in _batches(topics)
        for topic in admin.describe_topics(names)
        for partition in topic.partitions
        if broker is None or broker in partition.replicas
    ]


def _open_for_long(admin: Admin, partitions: Sequence[TopicPartition], arguments: argparse.Namespace) -> list[_Open]:
    """Return the transactions that are open for longer than the maximum timeout."""
    found = []
    for batch in _batches(partitions):
        try:
            producers = admin.describe_producers(batch, broker=arguments.broker_id)
        except ClientError as error:
            _fail(f"Failed to describe producers for {len(batch)} partitions on broker {arguments.broker_id}", error)
        since_ms = _now_ms() - arguments.max_transaction_timeout * _MINUTE_MS
        found += [
            _Open(partition, one)
            for partition, states in producers.items()
            for one in states
            if one.transaction_start != NOTHING and one.last_timestamp_ms < since_ms
        ]
    return found


def _without_coordinator(admin: Admin, long_open: Sequence[_Open]) -> list[_Open]:
    """Return the transactions that no coordinator will end: the coordinator lacks the producer or the partition."""
    if not long_open:
        return []
    ids = {one.producer.producer_id for one in long_open}
    try:
        listed = admin.list_transactions(producer_ids=ids)
    except ClientError as error:
        _fail(f"Failed to list transactions for {len(ids)} producers", error)
    parts: dict[int, Sequence[TopicPartition]] = {}
    for one in listed:
        try:
            described = admin.describe_transactions([one.transactional_id])
        except BrokerError as error:
            if error.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                _fail(f"Failed to describe {len(listed)} transactions", error)
        else:
            parts[one.producer_id] = described[one.transactional_id].partitions
    return [one for one in long_open if one.partition not in parts.get(one.producer.producer_id, ())]


def _batches(items: Sequence[str] | Sequence[TopicPartition]) -> Iterable[Sequence[Any]]:
    return (items[at : at + _AT_ONCE] for at in range(0, len(items), _AT_ONCE))


def _show(
    arguments: argparse.Namespace, headings: Sequence[str], rows: Iterable[Sequence[object]], keys: Iterable[str]
) -> None:
    """Print rows as a table, or as objects with these keys in the order of the columns."""
    if arguments.json:
        print_json([dict(zip(keys, row, strict=True)) for row in rows])
        return
    print("\n".join(table_lines([headings, *(tuple(map(str, row)) for row in rows)])))


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _words(error: ClientError) -> str:
    return java_words(error) if isinstance(error, BrokerError) else str(error)


def _fail(what: str, error: ClientError) -> NoReturn:
    raise CommandError(f"{what}: {_words(error)}") from None
