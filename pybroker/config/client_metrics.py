"""ClientMetricsConfig: the metrics that clients push, and the clients that push them (KIP-714).

Owns the keys of the resource `client-metrics`, their rules and error messages, which are those of Kafka's
`ClientMetricsConfigs`. Must not know clients.

Patterns are RE2 expressions, as are all patterns from clients: their time is linear in the text. Java's look-around
and back-references are rejected as invalid patterns.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec
import re2

from pybroker.config.key import LONGEST_NUMBER, integer, listing
from pybroker.config.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ALL_METRICS = "*"
"""Stands for all metrics of a client, instead of names."""
DEFAULT_INTERVAL_MS = 300_000
ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""The attributes of a client that patterns match."""
_LEAST_INTERVAL_MS, _MOST_INTERVAL_MS = 100, 3_600_000
_NUMBER = re.compile(r"[+-]?[0-9]+")


class ClientMetricsFault(msgspec.Struct, frozen=True):
    """An error, with Kafka's message."""

    message: str
    of_request: bool = False
    """Whether the error is INVALID_REQUEST, as in Kafka; otherwise INVALID_CONFIG."""


class ClientMetricsConfig(Settings):
    """The subscription of the matching clients."""

    metrics = listing(
        (), f"Prefixes of metric names; {ALL_METRICS} for all metrics, an empty list for none.", dynamic=True
    )
    interval_ms = integer(DEFAULT_INTERVAL_MS, "Time in ms between two pushes of a client.", dynamic=True)
    match = listing(
        (),
        "Patterns as ATTRIBUTE=PATTERN, all of which a client must match; an empty list matches every client.",
        dynamic=True,
    )

    @property
    def patterns(self) -> Mapping[str, Callable[[str], object]]:
        """Return the patterns by attribute, as functions that test whether the whole attribute matches."""
        return {attribute: _matcher(pattern) for attribute, pattern in map(_parsed, self.match)}


def client_metrics_fault(name: str, texts: Mapping[str, str]) -> ClientMetricsFault | None:
    """Return the error of the complete configs of a resource; None where they are valid."""
    if not name:
        return ClientMetricsFault("Subscription name can't be empty", of_request=True)
    for key in texts:
        if key not in ClientMetricsConfig.keys:
            return ClientMetricsFault(f"Unknown client metrics configuration: {key}", of_request=True)
    interval = texts.get(ClientMetricsConfig.interval_ms.name)
    if interval is not None:
        fault = _interval_fault(interval)
        if fault is not None:
            return fault
    for pattern in ClientMetricsConfig.match.value_of(texts.get(ClientMetricsConfig.match.name, "")):
        try:
            _matcher(_parsed(pattern)[1])
        except ValueError:
            return ClientMetricsFault(f"Illegal client matching pattern: {pattern}")
    return None


def _interval_fault(text: str) -> ClientMetricsFault | None:
    name, number = ClientMetricsConfig.interval_ms.name, text.strip()
    if len(number) > LONGEST_NUMBER or not _NUMBER.fullmatch(number) or not -(2**31) <= int(number) < 2**31:
        return ClientMetricsFault(f"Invalid value {text} for configuration {name}: Not a number of type INT")
    if not _LEAST_INTERVAL_MS <= int(number) <= _MOST_INTERVAL_MS:
        words = f"Invalid value {int(number)} for {name}, interval must be between 100 and 3600000 (1 hour)"
        return ClientMetricsFault(words, of_request=True)
    return None


def _parsed(item: str) -> tuple[str, str]:
    """Return attribute and pattern of `ATTRIBUTE=PATTERN`. Raises ValueError."""
    # Java's String.split omits empty parts at the end.
    parts = item.split("=")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    if len(parts) != 2 or parts[0].strip() not in ATTRIBUTES:
        raise ValueError(item)
    return parts[0].strip(), parts[1].strip()


def _matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that tests whether a whole text matches. Raises ValueError for an invalid pattern."""
    options = re2.Options()
    options.log_errors = False
    try:
        matches: Callable[[str], object] = re2.compile(pattern, options).fullmatch
    except re2.error as error:
        raise ValueError(pattern) from error
    return matches
