"""`pybroker replica-verification`: reads every replica of partitions, and compares which batches they have.

Owns options and output. Online it reads each replica as a consumer, up to the leader's high watermark at the start, and
works with any Kafka from 2.4 on. With --directories it compares the logs in data directories of stopped brokers. Exit
status 1: there are differences.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_cluster_options, open_admin
from pybroker.cli.dump_log.native import LogWalk
from pybroker.cli.errors import CommandError
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.replica_comparison import differences
from pybroker.client.administration.log_dirs import BatchMark, Replica, ReplicaBatches
from pybroker.client.administration.topics import EARLIEST, LATEST, TopicPartition
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pybroker.client.administration.admin import Admin
    from pybroker.client.administration.topics import PartitionDescription

DESCRIPTION = "Compare the replicas of partitions, batch by batch. The exit status is 0 if they are equal, else 1."

_PARTITION = re.compile(r"(?P<topic>.+)-(?P<index>\d+)")
_METADATA = "__cluster_metadata"
_AT_ONCE = 4 << 20
_NO_LIMIT = 2**63 - 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_cluster_options(parser, required=False)
    parser.add_argument(
        "--directories",
        nargs="+",
        type=Path,
        metavar="DIR",
        help="compare the logs in these data directories of stopped brokers instead of a cluster's replicas",
    )
    parser.add_argument(
        "--topics-include", default=".*", metavar="REGEX", help="topics to compare (%(default)s: all but internal ones)"
    )
    parser.add_argument(
        "--compacted",
        action="store_true",
        help="with --directories: the logs are compacted and may differ by removed records",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare replicas, print a line for each partition, and return 0 where nothing differs."""
    if (arguments.bootstrap_server is None) == (arguments.directories is None):
        raise CommandError("expected one of --bootstrap-server HOST:PORT and --directories DIR DIR", 2)
    try:
        topics = re.compile(arguments.topics_include)
    except re.error as error:
        raise CommandError(f"--topics-include {arguments.topics_include}: not a regular expression: {error}") from None
    try:
        if arguments.directories is not None:
            return _compare_directories(arguments.directories, topics, compacted=arguments.compacted)
        with open_admin(arguments) as admin:
            return _compare_replicas(admin, topics)
    except (ClientError, ConfigError, OSError) as error:
        raise CommandError(java_text(error) if isinstance(error, ClientError) else str(error)) from None


def _compare_replicas(admin: Admin, topics: re.Pattern[str]) -> int:
    names = [name for name in admin.list_topics() if topics.fullmatch(name)]
    faults = 0
    for topic in admin.describe_topics(names) if names else ():
        compacted = "compact" in (admin.describe_configs(topic.name)["cleanup.policy"].value or "")
        for description in topic.partitions:
            faults += _compare_partition(admin, topic.name, description, compacted=compacted)
    return int(faults > 0)


def _compare_partition(admin: Admin, topic: str, description: PartitionDescription, *, compacted: bool) -> int:
    partition = TopicPartition(topic, description.index)
    name = f"{topic}-{description.index}"
    if description.leader < 0:
        print(f"{name}: nobody leads it")
        return 1
    first = admin.list_offsets({partition: EARLIEST})[partition].offset
    end = admin.list_offsets({partition: LATEST})[partition].offset
    away = sorted(set(description.offline_replicas))
    if away:
        print(f"{name}: not compared, offline: replica {', '.join(map(str, away))}")
    found = {
        str(broker): admin.read_batches(Replica(partition, broker), first, end)
        for broker in description.replicas
        if broker not in away
    }
    # A replica that is catching up has a lower end, which is no fault.
    short = [
        f"replica {broker} ends at offset {found[str(broker)].end}, expected {end}"
        for broker in description.isr
        if str(broker) in found and found[str(broker)].end < end
    ]
    return _report(name, found, short, compacted=compacted)


def _compare_directories(directories: list[Path], topics: re.Pattern[str], *, compacted: bool) -> int:
    by_partition: dict[str, dict[str, Path]] = {}
    for directory in directories:
        for path in sorted(directory.iterdir()):
            match = _PARTITION.fullmatch(path.name)
            if match and path.is_dir() and match["topic"] != _METADATA and topics.fullmatch(match["topic"]):
                by_partition.setdefault(path.name, {})[str(directory)] = path
    faults = 0
    for name, paths in sorted(by_partition.items()):
        if len(paths) > 1:
            found = {where: read_log(path) for where, path in paths.items()}
            faults += _report(name, found, [], compacted=compacted)
    return int(faults > 0)


def read_log(directory: Path) -> ReplicaBatches:
    """Return the batches of the segments in a directory. Raises CommandError for an invalid log."""
    segments = sorted(directory.glob("*.log"))
    marks: list[BatchMark] = []
    for path in segments:
        walk = LogWalk.open(str(path), _NO_LIMIT)
        marks.extend(_marks(walk, path))
    first = int(segments[0].stem) if segments else 0
    return ReplicaBatches(first, marks[-1].last_offset + 1 if marks else first, tuple(marks))


def _marks(walk: LogWalk, path: Path) -> Iterator[BatchMark]:
    while True:
        batches, error = walk.batches(_AT_ONCE, with_bytes=False)
        for batch in batches:
            if not batch.is_valid:
                raise CommandError(f"{path}: the batch at position {batch.position} has a wrong checksum")
            header, message = batch.header(), batch.message()
            if header is not None:
                yield BatchMark(header[0], header[1], header[7], header[11])
            elif message is not None:
                yield BatchMark(message[0], message[0], -1, message[3])
        if error is not None:
            raise CommandError(f"{path}: {error}")
        if not batches:
            return


def _report(name: str, found: Mapping[str, ReplicaBatches], short: list[str], *, compacted: bool) -> int:
    """Print the result of a partition, and return the number of faults."""
    faults = short + (list(differences(found, compacted=compacted)) if len(found) > 1 else [])
    for fault in faults:
        print(f"{name}: {fault}")
    if not faults:
        first, end = max(one.first for one in found.values()), min(one.end for one in found.values())
        print(f"{name}: the same at {len(found)} replica{'' if len(found) == 1 else 's'}, offsets {first} to {end}")
    return len(faults)
