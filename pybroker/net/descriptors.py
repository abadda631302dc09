"""Descriptors: the limit of the process, and who may have how many of them.

Owns the raising of the limit and its division between connections, the files of logs and everything else (listeners,
the metadata log, checkpoints, indexes while they are mapped, Python's own). Must not know what connections or logs are.

    everything else    64 and a sixteenth of the limit
    connections        half of what is left, at most max.connections
    files of logs      half of what is left
"""

from __future__ import annotations

import logging
import resource
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pybroker.config.broker import BrokerConfig

log = logging.getLogger("pybroker.net")

_LEAST = 128
_SMALL = 4096
"""A limit below this is worth a warning; Kafka's documentation asks for 100,000."""
_UNLIMITED = 1 << 30


class TooFewDescriptorsError(Exception):
    """The limit is too low for a broker; the text is one line that says how to raise it."""


class Shares(msgspec.Struct, frozen=True):
    """How many descriptors there are, and what they are for."""

    limit: int
    connections: int
    """At most this many connections, whatever max.connections says."""
    log_files: int
    """About this many files of segments are kept open."""


def raise_limit() -> None:
    """Raise the soft limit of the process to the hard one; for a process that is the broker's own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # a system that names a hard limit which it does not grant
        log.warning("Failed to raise the limit of file descriptors from %d: %s", soft, error)


def divide() -> Shares:
    """Divide the limit in force; raises TooFewDescriptorsError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    if limit < _LEAST:
        raise TooFewDescriptorsError(
            f"RLIMIT_NOFILE is {limit} (hard limit {hard}): a broker needs at least {_LEAST} descriptors; see ulimit -n"
        )
    half = (limit - limit // 16 - 64) // 2
    return Shares(limit, connections=half, log_files=half)


def connections_allowed(shares: Shares, max_connections: int) -> tuple[int, str]:
    """Return how many connections may be open, and where the number comes from."""
    if max_connections <= shares.connections:
        return max_connections, "max.connections"
    return shares.connections, f"what RLIMIT_NOFILE={shares.limit} leaves for them"


def say(shares: Shares, config: BrokerConfig, partitions: int) -> None:
    """Log how the limit is divided; a warning where it is small for what the broker has or is to have."""
    max_connections = config.max_connections
    reasons = []
    if shares.limit < _SMALL:
        reasons.append("it is small for a broker")
    if "max.connections" in config.given and max_connections > shares.connections:
        reasons.append(f"max.connections={max_connections} cannot be reached")
    if partitions > shares.log_files:
        reasons.append(f"{partitions} partitions would need as many while all of them are written to")
    log.log(
        logging.WARNING if reasons else logging.INFO,
        "RLIMIT_NOFILE is %d: at most %d connections, about %d open files of logs%s",
        shares.limit,
        connections_allowed(shares, max_connections)[0],
        shares.log_files,
        f" ({'; '.join(reasons)}: see ulimit -n)" if reasons else "",
    )
