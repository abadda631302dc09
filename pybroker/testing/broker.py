"""`Broker`: a broker in this process, with its control plane on a loop thread of its own.

Owns the thread, the port while the broker is down, and, unless one is given, a data directory that is removed at the
end. Several may run at once.

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

# pytest ends the traceback of a wrong call at the line of the test.
__tracebackhide__ = True

T = TypeVar("T")

_DEFAULTS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "num.network.threads": "1",
    # A test's only consumer waits for no others.
    "group.initial.rebalance.delay.ms": "0",
}
_RECORDED_AT_MOST = 1000
_CANCELLED_S = 30  # how long an interrupted call waits for the broker to leave nothing half done
_CHORES_S = 60  # how long `advance` waits for what came due


class Broker(Controls):
    """One broker. Settings are given by keyword with underscores for dots, or in `properties` in Kafka's own names."""

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
        """Prepare a broker; raises ConfigError for a wrong value, UnknownKeyError for a key that there is not.

        `directory` is kept at the end, a temporary one not.

        `security` is SSL, SASL_PLAINTEXT or SASL_SSL: certificates are made on the fly, and `users`, passwords by name,
        log in by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512. `client_settings` has what clients need.
        """
        self._security = build_security(security, users)
        secured = {} if self._security is None else self._security.broker_properties()
        given = {**_DEFAULTS, **secured, **texts(properties, settings)}
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="pybroker-") if directory is None else directory)
        # Whatever becomes of this object and of the test, a temporary directory does not outlive the process.
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
        # The addresses from the first start to the stop that ends it.
        self._ports = ReservedPorts()
        self._refusing = False
        # Whether the directory has the users of SCRAM.
        self._has_users = False
        self.bootstrap_servers = ""

    def start(self) -> Broker:
        """Start, and return when the broker answers; raises NodeError, and RuntimeError for a broker that runs."""
        if self._thread is not None:
            raise RuntimeError(f"the broker is running already, at {self.bootstrap_servers or 'no address yet'}")
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
        """Return what confluent-kafka and other clients of librdkafka need to reach the broker.

        `user` is one of `users`, by default the first; with security="SSL" any name, which the client's certificate
        then has, or None for a client without one. Raises ValueError for a user or a mechanism that there is not.
        """
        given = {} if self._security is None else self._security.client_settings(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @checked
    def client_properties(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return the same by Kafka's names: for `pybroker.client`, the commands, Spark and Java."""
        given = {} if self._security is None else self._security.client_properties(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @checked
    def stop(self, *, keep: bool = False) -> None:
        """Stop cleanly; a broker that is not running is left alone.

        `keep`: the next `start` finds the data, and clients find it at the address that they know.
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
        """Stop cleanly and start again, with the data and at the address that clients know."""
        if self._node is None:
            raise RuntimeError("the broker is not running; start() starts it")
        self.stop(keep=True)
        self.start()

    def reset(self) -> None:
        """Leave nothing of what a test did: no fault, no topic, no group, the system's time; the address stays.

        The broker starts anew, on an empty directory, which takes as long as any start. One whose directory was given
        is refused: its data is not this broker's to delete.
        """
        if not self._temporary:
            raise RuntimeError(f"the data in {self.directory} is the caller's; delete topics and groups instead")
        self._running()
        self.clear_faults()
        self.stop(keep=True)
        self._clock.set_back()
        self._remove_directory()
        self.start()

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the broker for the block, and start it again with its data at its address."""
        self.stop(keep=True)
        try:
            yield
        finally:
            self.start()

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Refuse connections for the block, and close those that are open; the broker itself goes on."""
        self.refuse_connections()
        try:
            yield
        finally:
            self.accept_connections()

    def refuse_connections(self) -> None:
        """Close the listeners and every connection: clients find nobody at the address until `accept_connections`."""
        data_plane = self._running().data_plane
        self._refusing = True
        data_plane.stop_accepting()
        data_plane.close_connections()

    def accept_connections(self) -> None:
        """Listen again at the address that clients know; nothing happens to a broker that listens."""
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
        """Return what clients have pushed, the last values of each (KIP-714).

        They push what subscriptions request: `pybroker client-metrics`, or `Admin.alter_configs` of `CLIENT_METRICS`.
        The broker needs `properties={"telemetry.receivers": "last-values"}`, and the values need the extra
        `pybroker[telemetry]`. Raises RuntimeError where `telemetry.receivers` lacks last-values.
        """
        telemetry = self._running().telemetry
        if telemetry is None or telemetry.last_values is None:
            raise RuntimeError("no metrics of clients are kept: set telemetry.receivers=last-values")
        return telemetry.last_values.read()

    @checked
    def advance(self, by: timedelta | float) -> None:
        """Set the broker's clock ahead by a `timedelta`, or by seconds, and wait until what came due is done.

        Sessions of groups end, retention deletes, compaction runs, ids of producers expire, and records are stamped, as
        if that time had passed. Time-outs of single requests go by the system's clock.
        """
        step_ms = milliseconds(by)
        node = self._running()

        async def step() -> None:
            node.data_plane.set_clock_ahead(self._clock.ahead_ms + step_ms)
            await asyncio.wait_for(self._clock.advance(step_ms), _CHORES_S)

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
            raise RuntimeError("the broker is not running; start() starts it")
        return self._node

    def _with_ports(self) -> BrokerConfig:
        """Return the settings with the ports that are the broker's until it ends."""
        endpoints = self._ports.reserve(listener.endpoint for listener in self.config.endpoints)
        return BrokerConfig({**self._given, "listeners": ",".join(str(endpoint) for endpoint in endpoints)})

    async def _start(self, node: Node) -> tuple[OpenListener, ...]:
        listeners = await node.start()
        await self._make_users(node)
        node.data_plane.set_clock_ahead(self._clock.ahead_ms)
        self._interceptor.attach(node.data_plane)
        return listeners

    async def _make_users(self, node: Node) -> None:
        """Make the users of SCRAM, once for a directory."""
        if self._security is None or self._has_users:
            return
        for users in await asyncio.to_thread(self._security.scram_users):
            await node.make_scram_users(users)
        self._has_users = True

    async def _abandon(self, node: Node) -> None:
        """Stop a node whose start was interrupted when it had succeeded."""
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
        """Run `work` on the broker's loop; an exception that interrupts the caller cancels it and waits for its end."""
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
        """Make a temporary directory again that an earlier stop has removed."""
        if self._finalizer is not None and not self._finalizer.alive:
            self.directory.mkdir(mode=0o700)
            self._finalizer = weakref.finalize(self, _remove, self.directory, os.getpid())

    def _remove_directory(self) -> None:
        if self._finalizer is not None:
            self._finalizer()
            self._has_users = False


def _remove(directory: Path, pid: int) -> None:
    """Remove a directory, in the process that made it alone: a forked child ends as well."""
    if os.getpid() == pid:
        shutil.rmtree(directory, ignore_errors=True)


def _refuse_unknown(names: Sequence[str]) -> None:
    """Refuse keys that a started broker would only warn of: a test relies on what it sets. Raises UnknownKeyError."""
    for name in names:
        raise UnknownKeyError("broker", name, suggestion(name, BrokerConfig.keys))


def _dialled(host: str) -> str:
    if host in ("", "0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host
