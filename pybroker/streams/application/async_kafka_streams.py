"""KafkaStreams for asyncio: the same application, whose calls that wait do not block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from pybroker.streams.application.kafka_streams import KafkaStreams
from pybroker.streams.application.listeners import RestoreListener, StateListener, UncaughtHandler
from pybroker.streams.application.metadata import KeyQueryMetadata, StreamsMetadata
from pybroker.streams.application.queries import QueryableStore
from pybroker.streams.application.states import State
from pybroker.streams.serdes import Serde
from pybroker.streams.topology.nodes import Partitioner
from pybroker.streams.topology.topology import Topology


class AsyncKafkaStreams:
    """`async with AsyncKafkaStreams(topology, settings) as app: await app.start()`.

    Processors and listeners run in the threads of the application, as with `KafkaStreams`. A query holds a lock for the
    time of a few records, so it is a plain call.
    """

    def __init__(self, topology: Topology, settings: Mapping[str, Any]) -> None:
        """As `KafkaStreams`."""
        self._app = KafkaStreams(topology, settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def state(self) -> State:
        """The state of the application."""
        return self._app.state

    def set_state_listener(self, listener: StateListener) -> None:
        """As `KafkaStreams.set_state_listener`."""
        self._app.set_state_listener(listener)

    def set_uncaught_exception_handler(self, handler: UncaughtHandler) -> None:
        """As `KafkaStreams.set_uncaught_exception_handler`."""
        self._app.set_uncaught_exception_handler(handler)

    def set_restore_listener(self, listener: RestoreListener) -> None:
        """As `KafkaStreams.set_restore_listener`."""
        self._app.set_restore_listener(listener)

    async def start(self) -> None:
        """As `KafkaStreams.start`."""
        await asyncio.to_thread(self._app.start)

    async def close(self, timeout_s: float | None = None) -> bool:
        """As `KafkaStreams.close`."""
        return await asyncio.to_thread(self._app.close, timeout_s)

    async def wait(self, timeout_s: float | None = None) -> bool:
        """As `KafkaStreams.wait`."""
        return await asyncio.to_thread(self._app.wait, timeout_s)

    async def wait_until_running(self, timeout_s: float = 60.0) -> None:
        """As `KafkaStreams.wait_until_running`."""
        await asyncio.to_thread(self._app.wait_until_running, timeout_s)

    @property
    def is_paused(self) -> bool:
        """As `KafkaStreams.is_paused`."""
        return self._app.is_paused

    def pause(self) -> None:
        """As `KafkaStreams.pause`."""
        self._app.pause()

    def resume(self) -> None:
        """As `KafkaStreams.resume`."""
        self._app.resume()

    async def add_stream_thread(self) -> str | None:
        """As `KafkaStreams.add_stream_thread`."""
        return await asyncio.to_thread(self._app.add_stream_thread)

    async def remove_stream_thread(self, timeout_s: float | None = None) -> str | None:
        """As `KafkaStreams.remove_stream_thread`."""
        return await asyncio.to_thread(self._app.remove_stream_thread, timeout_s)

    def store(self, name: str, *, timestamped: bool = False) -> QueryableStore:
        """As `KafkaStreams.store`."""
        return self._app.store(name, timestamped=timestamped)

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """As `KafkaStreams.metadata_for_all_streams_clients`."""
        return self._app.metadata_for_all_streams_clients()

    def streams_metadata_for_store(self, store: str) -> list[StreamsMetadata]:
        """As `KafkaStreams.streams_metadata_for_store`."""
        return self._app.streams_metadata_for_store(store)

    async def query_metadata_for_key(
        self, store: str, key: Any, serde: Serde[Any] | None = None, *, partitioner: Partitioner | None = None
    ) -> KeyQueryMetadata:
        """As `KafkaStreams.query_metadata_for_key`."""
        return await asyncio.to_thread(self._app.query_metadata_for_key, store, key, serde, partitioner=partitioner)

    def metrics(self) -> dict[str, dict[str, float]]:
        """As `KafkaStreams.metrics`."""
        return self._app.metrics()

    def task_metrics(self) -> dict[str, dict[str, float]]:
        """As `KafkaStreams.task_metrics`."""
        return self._app.task_metrics()

    def store_metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """As `KafkaStreams.store_metrics`."""
        return self._app.store_metrics()
