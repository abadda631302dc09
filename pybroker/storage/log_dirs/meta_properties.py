"""Kafka's `meta.properties`, version 1: the cluster id and node id of a log directory.

Owns the format of the file. Must not decide whether a directory may be used.
"""

from __future__ import annotations

import base64
import functools
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

from pybroker.config.errors import ConfigError
from pybroker.config.properties import read_properties
from pybroker.storage.errors import ForeignDirectoryError
from pybroker.storage.log_dirs.atomic_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path

FILE_NAME = "meta.properties"
_NODE_ID = re.compile(r"[0-9]{1,10}")


class MetaProperties(NamedTuple):
    """The identity of a directory; ids are base64 of 16 bytes, as Kafka writes them."""

    cluster_id: str
    node_id: int
    directory_id: str


def random_id() -> str:
    """Return a fresh id in Kafka's form: 22 characters of URL-safe base64, not starting with a dash (KIP-516)."""
    while True:
        text = id_text(_random_uuid())
        if not text.startswith("-"):
            return text


def _random_uuid() -> bytes:
    """Return 16 random bytes that are a UUID of version 4 (RFC 9562), as Kafka's ids are."""
    data = bytearray(os.urandom(16))
    data[6] = data[6] & 0x0F | 0x40
    data[8] = data[8] & 0x3F | 0x80
    return bytes(data)


def id_text(data: bytes) -> str:
    """Return Kafka's text form of an id of 16 bytes."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@functools.lru_cache
def id_bytes(text: str) -> bytes:
    """Return the 16 bytes of an id in Kafka's text form; raises ValueError."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(data) != 16:
        raise ValueError(text)
    return data


def read_meta_properties(directory: Path) -> MetaProperties | None:
    """Return the contents of the file in `directory`, None without a file; raises ForeignDirectoryError for others."""
    path = directory / FILE_NAME
    if not path.exists():
        return None
    try:
        pairs = read_properties(path)
    except ConfigError as error:
        raise ForeignDirectoryError(str(error)) from None
    version = pairs.get("version")
    if version != "1":
        raise ForeignDirectoryError(
            f"{path}: version={version}, expected version=1 (a directory of Kafka 3.3 or later)"
        )
    cluster_id, node_id = pairs.get("cluster.id"), pairs.get("node.id")
    if not cluster_id or node_id is None or _NODE_ID.fullmatch(node_id) is None:
        raise ForeignDirectoryError(f"{path}: expected cluster.id and node.id")
    directory_id = pairs.get("directory.id") or random_id()
    try:
        id_bytes(directory_id)
    except ValueError:
        raise ForeignDirectoryError(
            f"{path}: directory.id={directory_id!r}, expected 16 bytes as 22 characters of URL-safe base64"
        ) from None
    return MetaProperties(cluster_id, int(node_id), directory_id)


def write_meta_properties(directory: Path, meta: MetaProperties) -> None:
    """Write the file in `directory`, whole or not at all; raises OSError."""
    text = (
        f"#\n#{time.strftime('%a %b %d %H:%M:%S UTC %Y', time.gmtime())}\n"
        f"cluster.id={meta.cluster_id}\ndirectory.id={meta.directory_id}\nnode.id={meta.node_id}\nversion=1\n"
    )
    replace_file(directory / FILE_NAME, text)
