"""Admin for blocking code: every call of `AsyncAdmin`, on an event loop of its own.

`with Admin("127.0.0.1:9092") as admin: admin.create_topics([NewTopic("orders", 3)])`. Not for use inside a
running event loop: use `AsyncAdmin` there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from pybroker.client.async_admin import AsyncAdmin, wait_for_leaders
from pybroker.client.topics import (
    TOPIC,
    ClusterDescription,
    ConfigEntry,
    CreatedTopic,
    ListedOffset,
    NewTopic,
    TopicDescription,
    TopicPartition,
)


class Admin:
    """A blocking `AsyncAdmin`; one thread at a time."""

    def __init__(self, bootstrap_servers: str, properties: Mapping[str, object] | None = None) -> None:
        self._async = AsyncAdmin(bootstrap_servers, properties)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection."""
        try:
            self._runner.run(self._async.close())
        finally:
            self._runner.close()

    def create_topics(
        self, topics: Sequence[NewTopic | str], *, validate_only: bool = False, timeout_ms: int = 60_000
    ) -> list[CreatedTopic]:
        """As `AsyncAdmin.create_topics`."""
        return self._runner.run(self._async.create_topics(topics, validate_only=validate_only, timeout_ms=timeout_ms))

    def delete_topics(self, names: Sequence[str], *, timeout_ms: int = 60_000) -> None:
        """As `AsyncAdmin.delete_topics`."""
        self._runner.run(self._async.delete_topics(names, timeout_ms=timeout_ms))

    def list_topics(self, *, internal: bool = False) -> list[str]:
        """As `AsyncAdmin.list_topics`."""
        return self._runner.run(self._async.list_topics(internal=internal))

    def describe_topics(self, names: Sequence[str]) -> list[TopicDescription]:
        """As `AsyncAdmin.describe_topics`."""
        return self._runner.run(self._async.describe_topics(names))

    def describe_cluster(self) -> ClusterDescription:
        """As `AsyncAdmin.describe_cluster`."""
        return self._runner.run(self._async.describe_cluster())

    def describe_configs(self, name: str, resource_type: int = TOPIC) -> dict[str, ConfigEntry]:
        """As `AsyncAdmin.describe_configs`."""
        return self._runner.run(self._async.describe_configs(name, resource_type))

    def list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, ListedOffset]:
        """As `AsyncAdmin.list_offsets`."""
        return self._runner.run(self._async.list_offsets(wanted))

    def wait_for_leaders(self, name: str, timeout_s: float = 30) -> TopicDescription:
        """Wait until every partition of a topic has a leader."""
        return self._runner.run(wait_for_leaders(self._async, name, timeout_s))
