"""The first voters of a quorum that may change, from `--initial-controllers` and `--standalone` (KIP-853).

Owns the syntax, `id@host:port:directory` separated by commas, and its errors with Kafka's messages. Must not know
directories.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.cli.uuids import parse_uuid
from pybroker.protocol.messages.records.voters import Endpoint, KRaftVersionFeature, Voter, VotersRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LAST_PORT = 65535
_LAST_ID = 2**31 - 1
_RESERVED_IDS = 100
"""Kafka reserves the lowest directory ids for special meanings, such as a lost directory."""


class InitialController(NamedTuple):
    """One of the initial voters."""

    node_id: int
    host: str
    port: int
    directory_id: bytes


def parse_initial_controllers(text: str) -> dict[int, InitialController]:
    """Return the voters sorted by id. Raises CommandError."""
    controllers: dict[int, InitialController] = {}
    for entry in (part.strip() for part in text.split(",")):
        if not entry:
            continue
        controller = _parse(entry)
        if controller.node_id in controllers:
            raise CommandError(f"Node id {controller.node_id} was specified more than once.")
        controllers[controller.node_id] = controller
    if not controllers:
        raise CommandError("No voters given.")
    return {node_id: controllers[node_id] for node_id in sorted(controllers)}


def voters_record(controllers: Iterable[InitialController], listener: str) -> VotersRecord:
    """Return the voters record, with the address of each voter on the listener of that name."""
    return VotersRecord(
        voters=[
            Voter(
                voter_id=one.node_id,
                voter_directory_id=one.directory_id,
                endpoints=[Endpoint(name=listener, host=one.host, port=one.port)],
                kraft_version_feature=KRaftVersionFeature(min_supported_version=0, max_supported_version=1),
            )
            for one in controllers
        ]
    )


def _parse(entry: str) -> InitialController:
    node_id_text, at, rest = entry.partition("@")
    if not at:
        raise _refused("No @ found in dynamic voter string.", entry)
    if not _NUMBER.fullmatch(node_id_text) or int(node_id_text) > _LAST_ID:
        raise _refused("Failed to parse node id in dynamic voter string.", entry)
    node_id = int(node_id_text)
    if node_id < 0:
        raise _refused(f"Invalid negative node id {node_id} in dynamic voter string.", entry)
    host, rest = _split_host(rest, entry)
    port_text, colon, directory = rest.partition(":")
    if not colon:
        raise _refused("No colon following port could be found.", entry)
    if not _NUMBER.fullmatch(port_text):
        raise _refused("Failed to parse port in dynamic voter string.", entry)
    port = int(port_text)
    if not 1 <= port <= _LAST_PORT:
        raise _refused(f"Invalid port {port} in dynamic voter string.", entry)
    if not host:
        raise _refused("Expected a host that the other nodes can dial.", entry)
    try:
        directory_id = parse_uuid(directory)
    except ValueError:
        raise _refused("Failed to parse directory ID in dynamic voter string.", entry) from None
    if int.from_bytes(directory_id, "big") < _RESERVED_IDS:
        raise _refused(f"Directory ID {directory} is reserved.", entry)
    return InitialController(node_id, host, port, directory_id)


def _split_host(text: str, entry: str) -> tuple[str, str]:
    """Return the host, and the rest behind its colon."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise _refused("Hostname began with left bracket, but no right bracket was found.", entry)
        if not rest.startswith(":"):
            raise _refused("No colon following hostname could be found.", entry)
        return host, rest[1:]
    host, colon, rest = text.partition(":")
    if not colon:
        raise _refused("No colon following hostname could be found.", entry)
    return host, rest


def _refused(sentence: str, entry: str) -> CommandError:
    return CommandError(f"{sentence} Given is {entry}, expected id@host:port:directory")
