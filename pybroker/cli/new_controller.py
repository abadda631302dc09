"""What `pybroker metadata-quorum add-controller` reads of the controller that is to vote: its settings and directory.

Owns the error messages, which are those of Kafka's tool. Must not know the quorum.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pybroker.cli.errors import CommandError
from pybroker.client.administration.quorum import RaftEndpoint
from pybroker.config.endpoint import parse_endpoints
from pybroker.config.properties import read_properties
from pybroker.storage.errors import StorageError
from pybroker.storage.log_dirs.meta_properties import id_bytes, read_meta_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOUBT = "Is this a valid controller configuration file?"


class NewController(NamedTuple):
    """A controller that is formatted but no voter."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[RaftEndpoint, ...]


def read_new_controller(path: Path) -> NewController:
    """Read a controller's server.properties, and its metadata directory. Raises CommandError, ConfigError."""
    if not path.exists():
        raise CommandError(f"Properties file {path} does not exists!")
    properties = read_properties(path)
    node_id = _node_id(properties)
    return NewController(node_id, _directory_id(_metadata_directory(properties)), _endpoints(properties))


def _node_id(properties: Mapping[str, str]) -> int:
    text = properties.get("node.id")
    if text is None:
        raise CommandError(f"node.id not found in configuration file. {_DOUBT}")
    try:
        node_id = int(text)
    except ValueError:
        raise CommandError(f"node.id={text}: expected a whole number. {_DOUBT}") from None
    if node_id < 0:
        raise CommandError(f"node.id was negative in configuration file. {_DOUBT}")
    if "controller" not in properties.get("process.roles", ""):
        raise CommandError(f"process.roles did not contain 'controller' in configuration file. {_DOUBT}")
    return node_id


def _metadata_directory(properties: Mapping[str, str]) -> Path:
    directory = properties.get("metadata.log.dir") or properties.get("log.dirs", "").split(",")[0].strip()
    if not directory:
        raise CommandError(f"Neither metadata.log.dir nor log.dirs were found. {_DOUBT}")
    return Path(directory)


def _directory_id(directory: Path) -> bytes:
    try:
        meta = read_meta_properties(directory)
    except (StorageError, OSError) as error:
        raise CommandError(str(error)) from None
    if meta is None:
        raise CommandError(f"Unable to read meta.properties from {directory}")
    if not meta.directory_id:
        raise CommandError(f"No directory id found in {directory}")
    return id_bytes(meta.directory_id)


def _endpoints(properties: Mapping[str, str]) -> tuple[RaftEndpoint, ...]:
    known = {}
    for key in ("listeners", "advertised.listeners"):
        texts = tuple(text.strip() for text in properties.get(key, "").split(",") if text.strip())
        known.update(parse_endpoints(key, texts))
    names = properties.get("controller.listener.names")
    if names is None:
        raise CommandError(f"controller.listener.names was not found. {_DOUBT}")
    endpoints = []
    for name in (name.strip().upper() for name in names.split(",")):
        if name not in known:
            raise CommandError(f"Cannot find information about controller listener name: {name}")
        endpoints.append(RaftEndpoint(name, known[name].host or "localhost", known[name].port))
    return tuple(dict.fromkeys(endpoints))
