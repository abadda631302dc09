"""`pybroker format`: gives log directories an identity before the first start, as `kafka-storage format` does.

Owns options, lines and errors, which are Kafka's, and the order of writing: `meta.properties` comes last, so that an
interrupted format leaves no formatted directory. Must not know the encoding of the files.
"""

from __future__ import annotations

import contextlib
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.initial_controllers import InitialController, parse_initial_controllers, voters_record
from pybroker.cli.initial_features import plan_levels, recorded
from pybroker.cli.scram_options import parse_scram_user
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import ConfigError
from pybroker.controller.quorum.log.bootstrap import remove_first_files, write_bootstrap, write_first_voters
from pybroker.metadata.features import METADATA_VERSION
from pybroker.metadata.metadata_versions import NAMES
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.storage.errors import DirectoryError, DirectoryFailedError
from pybroker.storage.log_dirs.log_directory import LogDirectory
from pybroker.storage.log_dirs.meta_properties import FILE_NAME, MetaProperties, id_bytes, id_text, random_id

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord

DESCRIPTION = "Format the log directories of a node."

_CLUSTER_ID = re.compile(r"[!-\[\]-~]+")
"""Characters of a `meta.properties` line that need no escape, since all its readers must get the same id."""


class Plan(NamedTuple):
    """The parameters for formatting the directories of a node."""

    config: BrokerConfig
    cluster_id: str
    levels: Mapping[str, int]
    controllers: Mapping[int, InitialController]
    """The initial voters; empty where the settings contain them, or there are none."""
    users: Sequence[UserScramCredentialRecord] = ()

    @property
    def release(self) -> str:
        """Return the name of the metadata.version."""
        return NAMES[self.levels[METADATA_VERSION]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config", "-c", type=Path, required=True, metavar="FILE", help="the server.properties of the node"
    )
    parser.add_argument("--cluster-id", "-t", required=True, metavar="CLUSTER_ID", help="the cluster id to use")
    parser.add_argument(
        "--add-scram",
        "-S",
        action="append",
        default=[],
        metavar="USER",
        help="a SCRAM credential, such as SCRAM-SHA-256=[name=alice,password=secret]; may be repeated",
    )
    parser.add_argument(
        "--ignore-formatted",
        "-g",
        action="store_true",
        help="skip directories that are already formatted",
    )
    parser.add_argument(
        "--release-version",
        "-r",
        metavar="RELEASE_VERSION",
        help="the release whose feature levels the cluster starts with, such as 4.0",
    )
    parser.add_argument(
        "--feature",
        "-f",
        action="append",
        default=[],
        metavar="FEATURE",
        help="the level of one feature, such as group.version=1",
    )
    quorum = parser.add_mutually_exclusive_group()
    quorum.add_argument(
        "--standalone",
        "-s",
        action="store_true",
        help="this controller is the only initial voter of a dynamic quorum",
    )
    quorum.add_argument(
        "--no-initial-controllers",
        "-N",
        action="store_true",
        help="this node joins a dynamic quorum as an observer, and may be added as a voter later",
    )
    quorum.add_argument(
        "--initial-controllers",
        "-I",
        metavar="CONTROLLERS",
        help="the initial voters of a dynamic quorum, as id@host:port:directory separated by commas; the same list on "
        "all nodes",
    )


def run(arguments: argparse.Namespace) -> int:
    """Format the directories and return 0."""
    plan = build_plan(arguments)
    paths = sorted({*plan.config.log_directories, plan.config.metadata_directory})
    with contextlib.ExitStack() as held:
        directories, failed = [], []
        for path in paths:
            try:
                directory = LogDirectory.acquire(path)
            except DirectoryFailedError:
                failed.append(path)
                continue
            except (DirectoryError, OSError) as error:
                raise CommandError(str(error)) from None
            held.callback(directory.release)
            directories.append(directory)
        _check_identity(plan, directories, ignore_formatted=arguments.ignore_formatted)
        _format(plan, directories, failed)
    return 0


def build_plan(arguments: argparse.Namespace) -> Plan:
    """Read the settings and validate the options against them. Raises CommandError."""
    try:
        config = BrokerConfig.from_properties(arguments.config)
    except ConfigError as error:
        raise CommandError(str(error)) from None
    users = [parse_scram_user(text) for text in arguments.add_scram]
    if not _CLUSTER_ID.fullmatch(arguments.cluster_id):
        raise CommandError(
            f"--cluster-id {arguments.cluster_id!r}: expected ASCII characters without blanks and backslashes, such as "
            "`pybroker random-uuid` prints"
        )
    is_requested = arguments.standalone or arguments.no_initial_controllers or arguments.initial_controllers is not None
    controllers = _initial_controllers(arguments, config)
    is_dynamic = is_requested and not config.quorum_voters
    if config.is_controller and not config.is_single and not config.quorum_voters and not is_requested:
        raise CommandError(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: "
            "--standalone, --initial-controllers, or --no-initial-controllers."
        )
    levels = plan_levels(arguments.release_version, arguments.feature, is_dynamic=is_dynamic)
    return Plan(config, arguments.cluster_id, levels, controllers, users)


def _initial_controllers(arguments: argparse.Namespace, config: BrokerConfig) -> dict[int, InitialController]:
    if not arguments.standalone and arguments.initial_controllers is None:
        return {}
    if config.quorum_voters:
        raise CommandError(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or "
            "--standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify "
            "controller.quorum.bootstrap.servers instead."
        )
    if config.is_single:
        raise CommandError("a quorum needs controller.listener.names and controller.quorum.bootstrap.servers")
    if arguments.initial_controllers is not None:
        return parse_initial_controllers(arguments.initial_controllers)
    if not config.is_controller:
        raise CommandError("You can only use --standalone on a controller.")
    listener = config.controller_endpoints[0]
    reached = listener.advertised or listener.endpoint
    if not reached.port:
        raise CommandError(f"listeners={reached}: expected a port that other nodes can dial")
    own = InitialController(config.node_id, reached.host or "localhost", reached.port, id_bytes(random_id()))
    return {own.node_id: own}


def _check_identity(plan: Plan, directories: Sequence[LogDirectory], *, ignore_formatted: bool) -> None:
    for directory in directories:
        meta, where = directory.meta, directory.path / FILE_NAME
        if meta is None:
            continue
        if meta.cluster_id != plan.cluster_id:
            raise CommandError(
                f"Invalid cluster.id in: {where}. Expected {plan.cluster_id}, but read {meta.cluster_id}"
            )
        if meta.node_id != plan.config.node_id:
            raise CommandError(
                f"Stored node id {meta.node_id} doesn't match previous node id {plan.config.node_id} in {where}. If "
                "you moved your data, make sure your configured node id matches. If you intend to create a new node, "
                "you should remove all data in your data directories."
            )
    formatted = [directory for directory in directories if directory.meta is not None]
    if formatted and not ignore_formatted:
        raise CommandError(
            f"Log directory {formatted[0].path} is already formatted. Use --ignore-formatted to ignore this directory "
            "and format the others."
        )


def _format(plan: Plan, directories: Sequence[LogDirectory], failed: Sequence[Path]) -> None:
    for path in failed:
        print(f"I/O error trying to read log directory {path}. Ignoring...")
    if failed and not directories:
        raise CommandError("No available log directories to format.")
    empty = [directory for directory in directories if directory.meta is None]
    if not empty:
        print("All of the log directories are already formatted.")
        return
    print(f"Bootstrap metadata: {_shown(recorded(plan.levels))}")
    for directory in empty:
        print(
            f"Formatting {_described(plan, directory)} {directory.path} with {METADATA_VERSION} {plan.release}.",
            flush=True,
        )
        try:
            _format_one(plan, directory)
        except (DirectoryError, OSError) as error:
            remove_first_files(directory.path)
            raise CommandError(f"Error while writing meta.properties file {directory.path}: {error}") from None


def _format_one(plan: Plan, directory: LogDirectory) -> None:
    now_ms = time.time_ns() // 1_000_000
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in recorded(plan.levels).items()]
    write_bootstrap(directory.path, [*records, *plan.users], now_ms)
    directory_id = random_id()
    if _is_metadata(plan, directory) and plan.controllers:
        listener = plan.config.controller_listener_names[0].upper()
        write_first_voters(directory.path, voters_record(plan.controllers.values(), listener), now_ms)
        own = plan.controllers.get(plan.config.node_id)
        if own is not None:
            directory_id = id_text(own.directory_id)
    directory.format(MetaProperties(plan.cluster_id, plan.config.node_id, directory_id))


def _is_metadata(plan: Plan, directory: LogDirectory) -> bool:
    return directory.path == plan.config.metadata_directory


def _described(plan: Plan, directory: LogDirectory) -> str:
    if not _is_metadata(plan, directory):
        return "data directory"
    if not plan.controllers:
        return "metadata directory"
    return f"dynamic metadata {'voter ' if plan.config.node_id in plan.controllers else ''}directory"


def _shown(levels: Mapping[str, int]) -> str:
    records = ", ".join(
        f"ApiMessageAndVersion(FeatureLevelRecord(name='{name}', featureLevel={level}) at version 0)"
        for name, level in levels.items()
    )
    return (
        f"BootstrapMetadata(records=[{records}], metadataVersionLevel={levels[METADATA_VERSION]}, "
        "source=format command)"
    )
