"""Counts of control-plane requests, by API and version.

Owns the counters and their text. They correspond to Kafka's `RequestMetrics`: `RequestsPerSec` is a rate of
`requests`. Requests that the data plane handles itself are not counted here. Used from one event loop.
"""

from __future__ import annotations

import msgspec


class ApiCounts(msgspec.Struct, eq=False):
    """The counts of one version of an API since the broker's start; they only increase."""

    requests: int = 0
    """Requests whose handler was called."""
    failures: int = 0
    """Requests whose handler raised, so that the whole response is an error."""


class RequestCounts:
    """The counts of every requested version of an API."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], ApiCounts] = {}

    def of(self, api: str, version: int) -> ApiCounts:
        """Return the counts of a version, which the caller increments; the same object during the broker's lifetime."""
        return self._counts.setdefault((api, version), ApiCounts())

    def all(self) -> list[tuple[str, str, ApiCounts]]:
        """Return API, version and counts of all requested versions, by name; from any thread."""
        return [(api, str(version), counts) for (api, version), counts in sorted(self._counts.items(), key=_key)]

    def __str__(self) -> str:
        """Return every requested version, sorted by name: `CreateTopics v7 1, Metadata v12 31 (2 failed)`."""
        return ", ".join(
            f"{api} v{version} {counts.requests}{f' ({counts.failures} failed)' if counts.failures else ''}"
            for (api, version), counts in sorted(self._counts.items(), key=_key)
            if counts.requests
        )


def _key(item: tuple[tuple[str, int], ApiCounts]) -> tuple[str, int]:
    return item[0]
