"""File descriptors: the limit of the process, and its division between uses.

Owns the raising of the limit and its division between connections, log files and everything else (listeners, the
metadata log, checkpoints, indexes while they are mapped, Python's own). Must not know connections or logs.

    everything else    64 and a sixteenth of the limit
    connections        half of the rest, at most max.connections
    log files          half of the rest
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
"""A limit below this is logged as a warning. Kafka's documentation recommends 100,000."""
_UNLIMITED = 1 << 30


class TooFewDescriptorsError(Exception):
    """The limit is too low for a broker. The text is one line, with how to raise it."""


class Shares(msgspec.Struct, frozen=True):
    """The limit of descriptors and its division."""

    limit: int
    connections: int
    """Maximum connections, even if max.connections is higher."""
    log_files: int
    """Approximate number of segment files that are kept open."""


def raise_limit() -> None:
    """Raise the soft limit of the process to the hard limit.

    Called only in a process of its own, not by an embedded broker.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # some systems do not grant their hard limit
        log.warning("Failed to raise the limit of file descriptors from %d: %s", soft, error)


def divide() -> Shares:
    """Return the division of the current limit. Raises TooFewDescriptorsError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _UNLIMITED if soft == resource.RLIM_INFINITY else soft
    if limit < _LEAST:
        raise TooFewDescriptorsError(
            f"RLIMIT_NOFILE is {limit} (hard limit {hard}): a broker needs at least {_LEAST} descriptors; see ulimit -n"
        )
    half = (limit - limit // 16 - 64) // 2
    return Shares(limit, connections=half, log_files=half)


def connections_allowed(shares: Shares, max_connections: int) -> tuple[int, str]:
    """Return the maximum number of connections, and the setting or limit that it is from."""
    if max_connections <= shares.connections:
        return max_connections, "max.connections"
    return shares.connections, f"the share of RLIMIT_NOFILE={shares.limit} for connections"


def report(shares: Shares, config: BrokerConfig, partitions: int) -> None:
    """Log the division of the limit, as a warning if it is too small for the settings or the partitions."""
    max_connections = config.max_connections
    reasons = []
    if shares.limit < _SMALL:
        reasons.append("the limit is low for a broker")
    if "max.connections" in config.given and max_connections > shares.connections:
        reasons.append(f"max.connections={max_connections} cannot be reached")
    if partitions > shares.log_files:
        reasons.append(f"{partitions} partitions need as many open files when all receive records")
    log.log(
        logging.WARNING if reasons else logging.INFO,
        "RLIMIT_NOFILE is %d: at most %d connections, about %d open log files%s",
        shares.limit,
        connections_allowed(shares, max_connections)[0],
        shares.log_files,
        f" ({'; '.join(reasons)}: see ulimit -n)" if reasons else "",
    )
