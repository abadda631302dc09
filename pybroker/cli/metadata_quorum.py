"""`pybroker metadata-quorum`: who votes about the metadata log, with kafka-metadata-quorum's options and output.

Owns the output, which is that of Kafka 4.3's tool. Must not know the protocol: it uses Admin, and works with any Kafka.
`new_controller` reads the data of the new controller for `add-controller`.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from pybroker.cli.cluster_access import add_node_options, open_admin
from pybroker.cli.errors import CommandError
from pybroker.cli.json_output import add_json_option, print_json
from pybroker.cli.kafka_exceptions import java_text
from pybroker.cli.new_controller import read_new_controller
from pybroker.cli.tables import table_lines
from pybroker.cli.uuids import parse_uuid
from pybroker.client.errors import ClientError
from pybroker.config.errors import ConfigError
from pybroker.storage.log_dirs.meta_properties import id_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from pybroker.client.administration.quorum import QuorumDescription, QuorumReplica

DESCRIPTION = (
    "Describe the metadata quorum, and change its voters. Options and output are those of kafka-metadata-quorum."
)

_REPLICA = {
    "nodeId": "integer",
    "directoryId": "string",
    "role": "string",
    "endOffset": "integer",
    "lag": "integer",
    "lastFetchMs": "integer|null",
    "lastCaughtUpMs": "integer|null",
    "endpoints": ["string"],
}
JSON = {
    "describe": {
        "clusterId": "string|null",
        "leaderId": "integer",
        "leaderEpoch": "integer",
        "highWatermark": "integer",
        "replicas": [_REPLICA],
    }
}
_COLUMNS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
_NO_DIRECTORY = bytes(16)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options and the subcommands."""
    add_node_options(parser)
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND")
    describe = subcommands.add_parser("describe", help="describe the quorum", allow_abbrev=False)
    describe.add_argument(
        "--status", action="store_true", help="print a summary: leader, epoch, lag, voters, observers"
    )
    describe.add_argument(
        "--replication", action="store_true", help="print the log end offset and the lag of each voter and observer"
    )
    describe.add_argument("--human-readable", action="store_true", help="with --replication: print times as ms ago")
    add_json_option(describe)
    add = subcommands.add_parser(
        "add-controller",
        help="add a controller as a voter; --command-config names its server.properties",
        allow_abbrev=False,
    )
    add.add_argument("--dry-run", action="store_true", help="print the change without making it")
    remove = subcommands.add_parser("remove-controller", help="remove a voter", allow_abbrev=False)
    remove.add_argument("--controller-id", "-i", type=int, required=True, metavar="ID", help="the controller's id")
    remove.add_argument(
        "--controller-directory-id", "-d", required=True, metavar="ID", help="the directory id of its metadata log"
    )
    remove.add_argument("--dry-run", action="store_true", help="print the change without making it")


def run(arguments: argparse.Namespace) -> int:
    """Run a subcommand and return 0."""
    try:
        _ACTIONS[arguments.subcommand](arguments)
    except (ClientError, ConfigError) as error:
        raise CommandError(java_text(error) if isinstance(error, ClientError) else str(error)) from None
    return 0


def _describe(arguments: argparse.Namespace) -> None:
    if arguments.status and arguments.replication:
        raise CommandError("Only one of --status or --replication should be specified with describe sub-command")
    if arguments.json:
        with open_admin(arguments) as admin:
            print_json(build_document(admin.describe_cluster().cluster_id, admin.describe_quorum()))
        return
    if not arguments.status and not arguments.replication:
        raise CommandError("One of --status or --replication must be specified with describe sub-command")
    if arguments.status and arguments.human_readable:
        raise CommandError("The option --human-readable is only supported along with --replication")
    with open_admin(arguments) as admin:
        if arguments.status:
            cluster_id = admin.describe_cluster().cluster_id
            lines = status_lines(cluster_id, admin.describe_quorum())
        else:
            quorum = admin.describe_quorum()
            now_ms = time.time_ns() // 1_000_000 if arguments.human_readable else None
            lines = replication_lines(quorum, now_ms)
    print("\n".join(lines))


def status_lines(cluster_id: str | None, quorum: QuorumDescription) -> list[str]:
    """Return the output of `describe --status`. Raises CommandError without a leader."""
    leader = _leader(quorum)
    last = min(quorum.voters, key=lambda voter: voter.end_offset)
    if last is leader:
        lag_ms = 0
    elif leader.last_caught_up_ms is None or last.last_caught_up_ms is None:
        lag_ms = -1
    else:
        lag_ms = leader.last_caught_up_ms - last.last_caught_up_ms
    shown = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.end_offset - last.end_offset,
        "MaxFollowerLagTimeMs": lag_ms,
        "CurrentVoters": _nodes(quorum, quorum.voters),
        "CurrentObservers": _nodes(quorum, quorum.observers),
    }
    return [f"{f'{name}:':<24}{value}" for name, value in shown.items()]


def build_document(cluster_id: str | None, quorum: QuorumDescription) -> dict[str, object]:
    """Return the output of `describe --json`, also without a leader; times in ms since 1970."""
    voters = [(replica, "leader" if replica.node_id == quorum.leader_id else "follower") for replica in quorum.voters]
    leading = max((replica.end_offset for replica, role in voters if role == "leader"), default=quorum.high_watermark)
    replicas = [
        {
            "nodeId": replica.node_id,
            "directoryId": id_text(replica.directory_id),
            "role": role,
            "endOffset": replica.end_offset,
            "lag": leading - replica.end_offset,
            "lastFetchMs": replica.last_fetch_ms,
            "lastCaughtUpMs": replica.last_caught_up_ms,
            "endpoints": [str(endpoint) for endpoint in quorum.endpoints.get(replica.node_id, ())],
        }
        for replica, role in [*voters, *((replica, "observer") for replica in quorum.observers)]
    ]
    return {
        "clusterId": cluster_id,
        "leaderId": quorum.leader_id,
        "leaderEpoch": quorum.leader_epoch,
        "highWatermark": quorum.high_watermark,
        "replicas": replicas,
    }


def _leader(quorum: QuorumDescription) -> QuorumReplica:
    for voter in quorum.voters:
        if voter.node_id == quorum.leader_id:
            return voter
    raise CommandError(f"no voter leads: the leader is {quorum.leader_id}; ask again when one is elected")


def _nodes(quorum: QuorumDescription, replicas: Iterable[QuorumReplica]) -> str:
    return f"[{', '.join(_node(quorum, replica) for replica in replicas)}]"


def _node(quorum: QuorumDescription, replica: QuorumReplica) -> str:
    fields = [f'"id": {replica.node_id}']
    if replica.directory_id != _NO_DIRECTORY:
        fields.append(f'"directoryId": "{id_text(replica.directory_id)}"')
    endpoints = quorum.endpoints.get(replica.node_id)
    if endpoints:
        fields.append(f'"endpoints": {json.dumps([str(endpoint) for endpoint in endpoints])}')
    return f"{{{', '.join(fields)}}}"


def replication_lines(quorum: QuorumDescription, now_ms: int | None) -> list[str]:
    """Return the output of `describe --replication`; times relative to `now_ms`, where it is given."""
    leader = _leader(quorum)
    followers = [voter for voter in quorum.voters if voter is not leader]
    kinds = (("Leader", [leader]), ("Follower", followers), ("Observer", quorum.observers))
    rows = [
        (
            str(replica.node_id),
            id_text(replica.directory_id),
            str(replica.end_offset),
            str(leader.end_offset - replica.end_offset),
            _time(replica.last_fetch_ms, "last fetch", now_ms),
            _time(replica.last_caught_up_ms, "last caught up", now_ms),
            kind,
        )
        for kind, replicas in kinds
        for replica in replicas
    ]
    return table_lines([_COLUMNS, *rows])


def _time(at_ms: int | None, what: str, now_ms: int | None) -> str:
    if at_ms is None:
        return "-1"
    if now_ms is None:
        return str(at_ms)
    if not 0 < at_ms <= now_ms:
        raise CommandError(
            f"Error while computing relative time, possible drift in system clock.\nCurrent timestamp is {now_ms}, "
            f"{what} timestamp is {at_ms}"
        )
    return f"{now_ms - at_ms} ms ago"


def _add(arguments: argparse.Namespace) -> None:
    if arguments.command_config is None:
        raise CommandError(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    controller = read_new_controller(arguments.command_config)
    if not arguments.dry_run:
        with open_admin(arguments, of_server=True) as admin:
            admin.add_raft_voter(controller.node_id, controller.directory_id, controller.endpoints)
    endpoints = ", ".join(map(str, controller.endpoints))
    print(
        f"{'DRY RUN of adding' if arguments.dry_run else 'Added'} controller {controller.node_id} with directory id "
        f"{id_text(controller.directory_id)} and endpoints: {endpoints}"
    )


def _remove(arguments: argparse.Namespace) -> None:
    if arguments.controller_id < 0:
        raise CommandError(f"Invalid negative --controller-id: {arguments.controller_id}")
    try:
        directory_id = parse_uuid(arguments.controller_directory_id)
    except ValueError as error:
        raise CommandError(f"Failed to parse --controller-directory-id: {error}") from None
    if not arguments.dry_run:
        with open_admin(arguments) as admin:
            admin.remove_raft_voter(arguments.controller_id, directory_id)
    # The blank before the next word is Kafka's.
    done = "DRY RUN of removing " if arguments.dry_run else "Removed "
    print(f"{done} KRaft controller {arguments.controller_id} with directory id {id_text(directory_id)}")


_ACTIONS = {"describe": _describe, "add-controller": _add, "remove-controller": _remove}
