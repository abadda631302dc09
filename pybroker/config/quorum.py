"""The metadata quorum as values: the voters, and the addresses of controllers.

Owns the syntax of `controller.quorum.voters` and `controller.quorum.bootstrap.servers`, with Kafka's error messages.
Must not know sockets, or the id of this node.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pybroker.config.errors import ConfigError, RefusedError

_ADDRESS = re.compile(r"(?:[0-9A-Za-z%._-]*://)?\[?(?P<host>[0-9A-Za-z%._:-]*)\]?:(?P<port>[0-9]+)", re.ASCII)
_LAST_PORT = 65535
_NOT_ROUTABLE = "0.0.0.0"
_VOTERS = "controller.quorum.voters"
_SERVERS = "controller.quorum.bootstrap.servers"
_VOTER_FORM = "Each entry should be in the form `{id}@{host}:{port}`."
_SERVER_FORM = 'Each entry should be in the form "{host}:{port}"'


class QuorumVoter(NamedTuple):
    """A voter, and its address."""

    node_id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.node_id}@{_bracketed(self.host)}:{self.port}"


def parse_voters(entries: tuple[str, ...]) -> tuple[QuorumVoter, ...]:
    """Return the voters sorted by id. If entries have the same id, the last one is used. Raises ConfigError."""
    voters = {}
    for entry in entries:
        voter = parse_voter(entry)
        voters[voter.node_id] = voter
    return tuple(voters[node_id] for node_id in sorted(voters))


def parse_voter(entry: str) -> QuorumVoter:
    """Parse the voter `id@host:port`. Raises ConfigError."""
    parts = entry.split("@")
    if len(parts) != 2:
        raise RefusedError(_VOTERS, entry, f"Invalid configuration value for {_VOTERS}. {_VOTER_FORM}")
    node_id, address = parts
    if not re.fullmatch(r"[+-]?[0-9]+", node_id, re.ASCII):
        raise RefusedError(_VOTERS, entry, f"Failed to parse voter ID as an integer from {node_id}")
    if not 0 <= int(node_id) < 2**31:
        raise ConfigError(_VOTERS, entry, "a node id of 0 to 2147483647")
    match = _ADDRESS.fullmatch(address)
    if match is None:
        sentence = f"Failed to parse host name from entry {entry} for the configuration {_VOTERS}. {_VOTER_FORM}"
        raise RefusedError(_VOTERS, entry, sentence)
    if match["host"] == _NOT_ROUTABLE:
        raise RefusedError(_VOTERS, entry, f"Host string ({_NOT_ROUTABLE}) is not routeable")
    host, port = _dialled(_VOTERS, entry, match)
    return QuorumVoter(int(node_id), host, port)


def parse_bootstrap_servers(entries: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return host and port of each server without duplicates, in the given order. Raises ConfigError."""
    servers: dict[tuple[str, int], None] = {}
    for entry in entries:
        match = _ADDRESS.fullmatch(entry)
        if match is None:
            sentence = f"Failed to parse host name from {entry} for the configuration {_SERVERS}. {_SERVER_FORM}"
            raise RefusedError(_SERVERS, entry, sentence)
        servers[_dialled(_SERVERS, entry, match)] = None
    return tuple(servers)


def _dialled(key: str, entry: str, match: re.Match[str]) -> tuple[str, int]:
    host, port = match["host"], int(match["port"])
    if not host:
        raise ConfigError(key, entry, "a host that the other nodes can connect to")
    if not 1 <= port <= _LAST_PORT:
        raise ConfigError(key, entry, f"a port from 1 to {_LAST_PORT}")
    return host, port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
