"""`Broker`: a broker in this process, with its control plane on a loop thread of its own.

Owns the thread, the port while the broker is down, and a data directory that is removed at the end, unless the test
gives one. Several brokers may run at once.

    with Broker(num_partitions=3) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        broker.fail("Produce", "NOT_ENOUGH_REPLICAS", times=2)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import uvloop

from pybroker.broker.broker_state import BrokerState
from pybroker.config.broker import BrokerConfig
from pybroker.config.errors import UnknownKeyError
from pybroker.config.settings import suggestion
from pybroker.net.listeners import open_listeners
from pybroker.node import Node
from pybroker.testing.arguments import checked
from pybroker.testing.clock import SteppedClock, milliseconds
from pybroker.testing.controls import Controls
from pybroker.testing.interceptor import Interceptor
from pybroker.testing.ports import ReservedPorts
from pybroker.testing.security import build_security
from pybroker.testing.settings import texts

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator, Mapping, Sequence
    from datetime import timedelta
    from types import TracebackType
    from typing import Any, Self

    from pybroker.net.listeners import OpenListener
    from pybroker.telemetry.last_values import ClientValues

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True

T = TypeVar("T")

_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "num.network.threads": "1",
    # A single consumer of a test must not wait for other members.
    "group.initial.rebalance.delay.ms": "0",
}
_RECORDED_AT_MOST = 1000
_CANCELLED_S = 30  # seconds that an interrupted call waits for the broker to complete or undo its work
_BACKGROUND_TASKS_S = 60  # seconds that `advance` waits for background tasks that are due


class Broker(Controls):
    """One broker. Settings are keyword arguments with underscores for dots, or `properties` with Kafka's names."""

    @checked
    def __init__(
        self,
        *,
        directory: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        """Prepare a broker. Raises ConfigError for an invalid value, UnknownKeyError for an unknown key.

        A given `directory` is kept at the end, a temporary one is removed.

        `security` is SSL, SASL_PLAINTEXT or SASL_SSL. Certificates are generated; `users`, passwords by name, can
        log in by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. `client_settings` returns the settings of clients.
        """
        self._security = build_security(security, users)
        secured = {} if self._security is None else self._security.broker_properties()
        given = {**_DEFAULTS, **secured, **texts(properties, settings)}
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="pybroker-") if directory is None else directory)
        # A temporary directory must not outlive the process, whatever happens to this object and to the test.
        self._finalizer = weakref.finalize(self, _remove, self.directory, os.getpid()) if self._temporary else None
        self._given = {"log.dirs": str(self.directory), **given}
        try:
            self.config = BrokerConfig(self._given)
            _refuse_unknown(self.config.unknown)
        except ValueError:
            self._remove_directory()
            raise
        self._clock = SteppedClock()
        super().__init__(Interceptor(self._clock, _RECORDED_AT_MOST))
        self._node: Node | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        # The addresses are reserved from the first start until a stop without `keep`.
        self._ports = ReservedPorts()
        self._refusing = False
        # Whether the SCRAM users were created in the directory.
        self._has_users = False
        self.bootstrap_servers = ""

    def start(self) -> Broker:
        """Start, and return when the broker is ready. Raises NodeError, and RuntimeError if the broker is running."""
        if self._thread is not None:
            raise RuntimeError(f"the broker is already running at {self.bootstrap_servers or 'no address yet'}")
        self._make_directory()
        loop = self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run_loop, args=(loop,), name="pybroker-control", daemon=True)
        self._thread.start()
        node = Node(self._with_ports(), clock=self._clock, intercepted=self._interceptor.decide)
        try:
            listeners = self._call(self._start(node))
        except BaseException:
            self._call(self._abandon(node))
            self._end_loop()
            self._ports.release()
            self._remove_directory()
            raise
        self._node, self._refusing = node, False
        self.bootstrap_servers = ",".join(f"{_dialled(one.bound.host)}:{one.bound.port}" for one in listeners)
        return self

    @checked
    def client_settings(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return the settings of confluent-kafka and other librdkafka clients for this broker.

        `user` is one of `users`, by default the first. With security="SSL" it is any name, which the client's
        certificate then contains, or None for a client without a certificate. Raises ValueError for an unknown user
        or mechanism.
        """
        given = {} if self._security is None else self._security.client_settings(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @checked
    def client_properties(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return the same settings by Kafka's names: for `pybroker.client`, the commands, Spark and Java."""
        given = {} if self._security is None else self._security.client_properties(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @checked
    def stop(self, *, keep: bool = False) -> None:
        """Stop cleanly. Does nothing if the broker is not running.

        With `keep`, the next `start` uses the same data and the same address.
        """
        node, self._node = self._node, None
        if node is not None:
            try:
                self._call(self._stop(node))
            finally:
                self._end_loop()
        if not keep:
            self._ports.release()
            self._remove_directory()

    def restart(self) -> None:
        """Stop cleanly and start again, with the same data and address."""
        if self._node is None:
            raise RuntimeError("the broker is not running; call start()")
        self.stop(keep=True)
        self.start()

    def reset(self) -> None:
        """Reset the broker: remove faults, topics and groups, and reset the clock. The address stays.

        The broker restarts on an empty directory, which takes as long as any start. A broker whose directory was
        given raises an error, since it must not delete that data.
        """
        if not self._temporary:
            raise RuntimeError(f"the data in {self.directory} belongs to the caller; delete topics and groups instead")
        self._running()
        self.clear_faults()
        self.stop(keep=True)
        self._clock.set_back()
        self._remove_directory()
        self.start()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker for the block, then start it again with the same data and address."""
        self.stop(keep=True)
        try:
            yield
        finally:
            self.start()

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse connections during the block, and close open ones. The broker keeps running."""
        self.refuse_connections()
        try:
            yield
        finally:
            self.accept_connections()

    def refuse_connections(self) -> None:
        """Close the listeners and every connection: clients cannot connect until `accept_connections`."""
        data_plane = self._running().data_plane
        self._refusing = True
        data_plane.stop_accepting()
        data_plane.close_connections()

    def accept_connections(self) -> None:
        """Listen again at the same address. Does nothing if the broker is listening."""
        node = self._running()
        if self._refusing:
            node.data_plane.resume_accepting()
            open_listeners(
                node.data_plane,
                node.config.endpoints,
                backlog=node.config.socket_listen_backlog_size,
                unauthenticated_max_bytes=node.config.sasl_server_max_receive_size,
                tls=node.tls,
            )
            self._refusing = False

    def close_connections(self) -> None:
        """Close every connection at once; clients may connect again."""
        self._running().data_plane.close_connections()

    def client_metrics(self) -> tuple[ClientValues, ...]:
        """Return the last values of the metrics that each client has pushed (KIP-714).

        Clients push the metrics of subscriptions: `pybroker client-metrics`, or `Admin.alter_configs` of
        `CLIENT_METRICS`. The broker needs `properties={"telemetry.receivers": "last-values"}`, and the values need
        the extra `pybroker[telemetry]`. Raises RuntimeError where `telemetry.receivers` lacks last-values.
        """
        telemetry = self._running().telemetry
        if telemetry is None or telemetry.last_values is None:
            raise RuntimeError("client metrics are not stored: set telemetry.receivers=last-values")
        return telemetry.last_values.read()

    @checked
    def advance(self, by: timedelta | float) -> None:
        """Advance the broker's clock by a `timedelta`, or by seconds, and wait until the work that is due is done.

        Group sessions expire, retention deletes, compaction runs, producer ids expire, and records are stamped, as if
        that time had passed. Timeouts of single requests use the system's clock.
        """
        step_ms = milliseconds(by)
        node = self._running()

        async def step() -> None:
            node.data_plane.set_clock_ahead(self._clock.ahead_ms + step_ms)
            await asyncio.wait_for(self._clock.advance(step_ms), _BACKGROUND_TASKS_S)

        self._call(step())

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(error)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._leave, error)

    def _leave(self, _error: BaseException | None) -> None:
        """Stop at the end of a block, except in a forked child (`pybroker/client/forking.py`)."""
        self.stop()

    def _versions_changed(self) -> None:
        if self._node is not None:
            self.close_connections()

    def _running(self) -> Node:
        if self._node is None:
            raise RuntimeError("the broker is not running; call start()")
        return self._node

    def _with_ports(self) -> BrokerConfig:
        """Return the settings with the ports that stay reserved for the broker."""
        endpoints = self._ports.reserve(listener.endpoint for listener in self.config.endpoints)
        return BrokerConfig({**self._given, "listeners": ",".join(str(endpoint) for endpoint in endpoints)})

    async def _start(self, node: Node) -> tuple[OpenListener, ...]:
        listeners = await node.start()
        await self._make_users(node)
        node.data_plane.set_clock_ahead(self._clock.ahead_ms)
        self._interceptor.attach(node.data_plane)
        return listeners

    async def _make_users(self, node: Node) -> None:
        """Create the SCRAM users, once for each directory."""
        if self._security is None or self._has_users:
            return
        for users in await asyncio.to_thread(self._security.scram_users):
            await node.make_scram_users(users)
        self._has_users = True

    async def _abandon(self, node: Node) -> None:
        """Stop a node whose start succeeded but was interrupted."""
        if node.state is BrokerState.RUNNING:
            await self._stop(node)

    async def _stop(self, node: Node) -> None:
        self._interceptor.attach(None)
        await node.stop()

    @staticmethod
    def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the broker's loop. An exception that interrupts the caller cancels it and waits for its end."""
        if self._loop is None:
            raise RuntimeError("the broker is not running")
        ended = threading.Event()

        async def run() -> T:
            try:
                return await work
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(_CANCELLED_S)
            raise

    def _end_loop(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _make_directory(self) -> None:
        """Create the temporary directory again after an earlier stop has removed it."""
        if self._finalizer is not None and not self._finalizer.alive:
            self.directory.mkdir(mode=0o700)
            self._finalizer = weakref.finalize(self, _remove, self.directory, os.getpid())

    def _remove_directory(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
            self._has_users = False


def _remove(directory: Path, pid: int) -> None:
    """Remove a directory, but only in the process that created it: a forked child exits too."""
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)


def _refuse_unknown(names: Sequence[str]) -> None:
    """Reject unknown keys, which a start would only log: a test relies on its settings. Raises UnknownKeyError."""
    for name in names:
        raise UnknownKeyError("broker", name, suggestion(name, BrokerConfig.keys))


def _dialled(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
