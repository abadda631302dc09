"""`Cluster`: brokers in processes of their own, which a test can kill, pause and restart.

Owns the addresses of its brokers, also while they are down, and a directory that is removed at the end, unless the
test gives one. Every process that it has started ends with it.

    with Cluster(brokers=3) as cluster:
        producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers})
        cluster.kill(cluster.leader("orders", 0))
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import tempfile
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.topics import TopicPartition
from pybroker.client.administration.user_admin import ScramPassword
from pybroker.client.errors import BrokerError, ClientError
from pybroker.client.forking import register
from pybroker.config.broker import BrokerConfig
from pybroker.config.endpoint import Endpoint
from pybroker.config.errors import UnknownKeyError
from pybroker.config.settings import suggestion
from pybroker.local_cluster.cluster import START_S, LocalCluster
from pybroker.local_cluster.layout import (
    BROKER_LISTENER,
    CONTROLLER_LISTENER,
    NodePorts,
    build_properties,
    takes_anybody,
)
from pybroker.local_cluster.members import wait_members
from pybroker.security.scram_mechanisms import SCRAM_BY_NAME
from pybroker.testing.arguments import checked
from pybroker.testing.ports import ReservedPorts
from pybroker.testing.security import build_security
from pybroker.testing.settings import texts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from pybroker.client.administration.topics import PartitionDescription

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True

Found = TypeVar("Found")

_DEFAULTS = {
    "num.network.threads": "1",
    # A single consumer of a test must not wait for other members.
    "group.initial.rebalance.delay.ms": "0",
}
_POLL_S = 0.02
_WAIT_S = 30.0


class Cluster:
    """A cluster of broker processes. Settings are those of `Broker`, and apply to every broker.

    Broker ids are 1 to `brokers`; the first three are voters of the metadata quorum. Used from one thread at a time.
    """

    _in_child = frozenset({"address", "bootstrap_servers", "client_properties", "client_settings", "directory"})
    """Attributes that a forked child may use: its clients connect to the brokers."""

    @checked
    def __init__(
        self,
        brokers: int = 3,
        *,
        directory: str | Path | None = None,
        properties: Mapping[str, str] | None = None,
        racks: Sequence[str | None] | None = None,
        client: Mapping[str, object] | None = None,
        security: str | None = None,
        users: Mapping[str, str] | None = None,
        **settings: object,
    ) -> None:
        """Prepare a cluster. Raises ConfigError for an invalid value, UnknownKeyError for an unknown key.

        A given `directory` is kept at the end, a temporary one is removed. `racks` has the `broker.rack` of each
        broker. `client` has the client settings with which this object connects to the brokers, such as `ssl.*` and
        `sasl.*` where their listeners are secured; `security.inter.broker.protocol` secures all listeners.

        `security` and `users` are those of `Broker`, and also apply between the nodes. `client_settings` and
        `client_properties` return the settings of clients.
        """
        if racks is not None and len(racks) != brokers:
            raise ValueError(f"racks={list(racks)}: expected a rack, or None, for each of {brokers} brokers")
        self._security = build_security(security, users)
        self._client = {"default.api.timeout.ms": int(START_S * 1000), **self._own_login(), **(client or {})}
        secured = {} if self._security is None else self._security.node_properties()
        given = {**_DEFAULTS, **secured, **texts(properties, settings)}
        self._gets_in = bool(client) or self._security is not None or takes_anybody(given)
        self._reserved = [ReservedPorts() for _ in range(brokers)]
        temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="pybroker-cluster-") if directory is None else directory)
        self._local = LocalCluster(self.directory, [_reserve(ports) for ports in self._reserved], given, racks=racks)
        # Neither node processes nor a temporary directory must outlive this process, whatever happens to the test.
        removed = self.directory if temporary else None
        self._finalizer = weakref.finalize(self, _end, self._local, self._reserved, removed, os.getpid())
        atexit.register(self._finalizer)
        register(self)
        try:
            _check(self._local, given)
        except ValueError:
            self._finalizer()
            raise

    @property
    def bootstrap_servers(self) -> str:
        """Return the addresses of all brokers, in the order of their ids."""
        return self._local.bootstrap_servers

    @checked
    def client_settings(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return the settings of confluent-kafka and other librdkafka clients, as `Broker.client_settings`."""
        given = {} if self._security is None else self._security.client_settings(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @checked
    def client_properties(self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        """Return the same settings by Kafka's names: for `pybroker.client`, the commands, Spark and Java."""
        given = {} if self._security is None else self._security.client_properties(user, mechanism)
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    @property
    def cluster_id(self) -> str:
        """Return the cluster id; empty before the first start."""
        return self._local.cluster_id

    @property
    def brokers(self) -> tuple[int, ...]:
        """Return the ids of all brokers."""
        return tuple(node.node_id for node in self._local.nodes)

    @property
    def running(self) -> tuple[int, ...]:
        """Return the ids of the brokers whose processes exist, paused or not."""
        return self._local.running

    @checked
    def address(self, broker: int) -> str:
        """Return host:port of a broker, whether it runs or not."""
        return self._local.node(broker).address

    @checked
    def pid(self, broker: int) -> int:
        """Return the process id of a broker. Raises RuntimeError if it is not running."""
        mark = self._local.process(broker).mark
        if mark is None:
            raise RuntimeError(f"broker {broker} is not running")
        return mark.pid

    @checked
    def log(self, broker: int) -> str:
        """Return the log output of a broker, from all its runs."""
        path = self._local.node(broker).log
        return path.read_text(errors="replace") if path.exists() else ""

    @checked
    def start(self, broker: int | None = None) -> Self:
        """Start all brokers, or one that was stopped or killed. Returns when they are ready. Raises NodeFailedError.

        After a start of all, metadata responses contain all of them.
        """
        if broker is not None:
            self._local.start_nodes([broker])
        else:
            self._local.start()
            if self._gets_in:
                wait_members(self._local.nodes, self._client, START_S)
            self._make_users()
        return self

    @checked
    def stop(self, broker: int | None = None) -> None:
        """Stop one broker cleanly, or all of them. A stop of all ends the cluster and removes a temporary directory."""
        if broker is not None:
            self._local.stop_node(broker)
            return
        try:
            self._local.stop()
        finally:
            self._finalizer()

    @checked
    def restart(self, broker: int) -> None:
        """Stop a broker cleanly and start it again."""
        self.stop(broker)
        self.start(broker)

    @checked
    def kill(self, broker: int) -> None:
        """Kill a broker as a crash does (SIGKILL). `start` restarts it with the same data and address."""
        self._local.kill_node(broker)

    @checked
    def pause(self, broker: int) -> None:
        """Stop the execution of a broker's process (SIGSTOP): its connections stay open, without responses."""
        self._local.pause_node(broker)

    @checked
    def resume(self, broker: int) -> None:
        """Continue a paused broker (SIGCONT)."""
        self._local.resume_node(broker)

    @checked
    @contextlib.contextmanager
    def paused(self, broker: int) -> Iterator[None]:
        """Pause a broker for the block."""
        self.pause(broker)
        try:
            yield
        finally:
            self.resume(broker)

    @checked
    def leader(self, topic: str, partition: int = 0, *, timeout: float = _WAIT_S) -> int:
        """Return the leader of a partition, and wait until there is one. Raises TimeoutError."""
        found = self.wait_for_partition(topic, partition, lambda it: it.leader >= 0, timeout=timeout)
        return found.leader

    @checked
    def controller(self, *, timeout: float = _WAIT_S) -> int:
        """Return the leader of the metadata quorum, and wait until there is one. Raises TimeoutError."""
        with self._admin() as admin:
            return _until(
                lambda: admin.describe_cluster().controller_id,
                lambda node: node in self.running,
                timeout,
                "no running node leads the metadata quorum",
            )

    @checked
    def in_sync(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Return the current in-sync replicas of a partition."""
        with self._admin() as admin:
            return _describe(admin, topic, partition).isr

    @checked
    def wait_in_sync(
        self, topic: str, partition: int = 0, brokers: Collection[int] | None = None, *, timeout: float = _WAIT_S
    ) -> None:
        """Wait until exactly these brokers, by default all replicas, are in sync. Raises TimeoutError."""

        def reached(found: PartitionDescription) -> bool:
            return set(found.isr) == set(found.replicas if brokers is None else brokers)

        self.wait_for_partition(topic, partition, reached, timeout=timeout)

    @checked
    def wait_for_partition(
        self,
        topic: str,
        partition: int,
        reached: Callable[[PartitionDescription], bool],
        *,
        timeout: float = _WAIT_S,
    ) -> PartitionDescription:
        """Wait until `reached` is true for the partition's metadata, and return it. Raises TimeoutError."""
        with self._admin() as admin:
            return _until(
                lambda: _describe(admin, topic, partition),
                reached,
                timeout,
                f"{topic}-{partition} did not reach the expected state",
            )

    @checked
    def move_leader(self, topic: str, partition: int, broker: int, *, timeout: float = _WAIT_S) -> None:
        """Make an in-sync replica the leader of a partition. Raises TimeoutError, ValueError.

        It also becomes the preferred leader.
        """
        where = TopicPartition(topic, partition)
        with self._admin() as admin:
            found = _describe(admin, topic, partition)
            if broker not in found.replicas:
                raise ValueError(f"broker {broker} is no replica of {topic}-{partition}: {list(found.replicas)} are")
            order = (broker, *(replica for replica in found.replicas if replica != broker))
            _raise_first(admin.alter_partition_reassignments({where: order}).values())
            _until(
                lambda: _describe(admin, topic, partition),
                lambda it: it.replicas == order and broker in it.isr,
                timeout,
                f"broker {broker} did not become the preferred leader of {topic}-{partition}",
            )
            _until(
                lambda: _elect(admin, where, broker),
                lambda it: it.leader == broker,
                timeout,
                f"broker {broker} did not become the leader of {topic}-{partition}",
            )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(error)

    def _leave(self, error: BaseException | None) -> None:
        """Stop at the end of a block, except in a forked child (`pybroker/client/forking.py`)."""
        self._finalizer() if error is not None else self.stop()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self._leave, error)

    def _own_login(self) -> dict[str, str]:
        """Return the login of this object: by PLAIN, whose users are in the nodes' settings."""
        return {} if self._security is None else self._security.client_properties(None, "PLAIN")

    def _make_users(self) -> None:
        """Create the SCRAM users, once for each directory."""
        if self._security is None or not self._security.needs_password:
            return
        with self._admin() as admin:
            known = admin.describe_scram_users()
            for name, password in self._security.users.items():
                for mechanism in SCRAM_BY_NAME.keys() - known.get(name, {}).keys():
                    admin.alter_scram_user(name, give=ScramPassword(mechanism, password))

    def _admin(self) -> Admin:
        running = [self.address(broker) for broker in self.running] or [self.bootstrap_servers]
        return Admin(",".join(running), self._client)


def _describe(admin: Admin, topic: str, partition: int) -> PartitionDescription:
    [described] = admin.describe_topics([topic])
    for found in described.partitions:
        if found.index == partition:
            return found
    raise ValueError(f"topic {topic} has no partition {partition}: it has {len(described.partitions)}")


def _until(read: Callable[[], Found], reached: Callable[[Found], bool], timeout: float, failed: str) -> Found:
    """Poll until `reached` is true for the result, and return it. Errors of a changing cluster are ignored."""
    deadline = time.monotonic() + timeout
    last: object = None
    while True:
        try:
            last = found = read()
            if reached(found):
                return found
        except (BrokerError, ClientError) as error:
            last = error
        if time.monotonic() > deadline:
            raise TimeoutError(f"{failed} within {timeout:g} s; last seen: {last}")
        time.sleep(_POLL_S)


def _elect(admin: Admin, where: TopicPartition, broker: int) -> PartitionDescription:
    """Elect the preferred leader, which is `broker`, and return the partition. Raises BrokerError for a rejected
    election.

    The error may be transient: the controller elects no fenced broker.
    """
    found = _describe(admin, where.topic, where.partition)
    if found.leader != broker:
        _raise_first(admin.elect_leaders([where]).values())
        found = _describe(admin, where.topic, where.partition)
    return found


def _raise_first(errors: Collection[BrokerError | None]) -> None:
    for error in errors:
        if error is not None:
            raise error


def _reserve(ports: ReservedPorts) -> NodePorts:
    names = (BROKER_LISTENER, CONTROLLER_LISTENER)
    broker, controller = ports.reserve(Endpoint(name, "127.0.0.1", 0) for name in names)
    return NodePorts(broker.port, controller.port)


def _check(local: LocalCluster, given: Mapping[str, str]) -> None:
    """Reject settings with which no node would start, and unknown keys."""
    for node in local.nodes:
        for name in BrokerConfig(build_properties(local.nodes, node, given)).unknown:
            raise UnknownKeyError("broker", name, suggestion(name, BrokerConfig.keys))


def _end(local: LocalCluster, reserved: list[ReservedPorts], removed: Path | None, pid: int) -> None:
    """End all processes and remove the directory, only in the process that created them: a forked child exits too."""
    if os.getpid() != pid:
        return
    local.kill_all()
    for ports in reserved:
        ports.release()
    if removed is not None:
        shutil.rmtree(removed, ignore_errors=True)
