"""`Broker`: a broker in this process, with its control plane on a loop thread of its own.

Owns the thread and, unless one is given, a data directory that is removed at the end. Several may run at once.

    with Broker(num_partitions=3) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import uvloop

from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import UnknownKeyError
from pybroker.config.settings import suggestion
from pybroker.node import Node

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping, Sequence
    from types import TracebackType
    from typing import Any, Self

T = TypeVar("T")

_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "num.network.threads": "1",
    # A test's only consumer waits for no others.
    "group.initial.rebalance.delay.ms": "0",
}


class Broker:
    """One broker. Settings are given by keyword with underscores for dots, or in `properties` in Kafka's own names."""

    def __init__(
        self,
        *,
        directory: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        """Prepare a broker; raises ConfigError for a wrong value, UnknownKeyError for a key that there is not.

        `directory` is kept at the end, a temporary one not.
        """
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="pybroker-") if directory is None else directory)
        given = {**_DEFAULTS, "log.dirs": str(self.directory), **(properties or {})}
        for name, value in settings.items():
            given[name.replace("_", ".")] = str(value).lower() if isinstance(value, bool) else str(value)
        try:
            self.config = BrokerConfig(given)
            _refuse_unknown(self.config.unknown)
        except ValueError:
            self._remove_directory()
            raise
        self._node: Node | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.bootstrap_servers = ""

    def start(self) -> Broker:
        """Start, and return when the broker answers; raises NodeError, and RuntimeError for a broker that runs."""
        if self._thread is not None:
            raise RuntimeError(f"the broker is running already, at {self.bootstrap_servers or 'no address yet'}")
        loop = self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, args=(loop,), name="pybroker-control", daemon=True)
        self._thread.start()
        node = Node(self.config)
        try:
            listeners = self._call(node.start())
        except BaseException:
            self._end_loop()
            self._remove_directory()
            raise
        self._node = node
        self.bootstrap_servers = ",".join(f"{_dialled(one.bound.host)}:{one.bound.port}" for one in listeners)
        return self

    def stop(self) -> None:
        """Stop cleanly; a broker that is not running is left alone."""
        node, self._node = self._node, None
        if node is None:
            return
        try:
            self._call(node.stop())
        finally:
            self._end_loop()
            self._remove_directory()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            raise RuntimeError("the broker is not running")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _remove_directory(self) -> None:
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)


def _refuse_unknown(names: Sequence[str]) -> None:
    """Refuse keys that a started broker would only warn of: a test relies on what it sets. Raises UnknownKeyError."""
    for name in names:
        raise UnknownKeyError("broker", name, suggestion(name, BrokerConfig.keys))


def _dialled(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
