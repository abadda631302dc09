"""The active controller's failure detector: detects failed brokers by their closed connections and refused ports.

Owns the connection of each broker's heartbeats, and the probe of a broker's listener after that connection ends. Must
not fence a broker: the cluster machine does, by the same event as for an expired session.

A refused connection proves that the broker's process has ended. Any other outcome may be a slow or partitioned network:
then the broker session's timeout decides, as in Kafka. A false detection costs an election and no record
(docs/adr/0043-a-closed-connection-and-a-refused-port-are-a-death.md, docs/rooms/failure-detection.md).
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from enum import Enum
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import SessionExpired
from pybroker.controller.errors import ControllerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pybroker.controller.service import Controller

log = logging.getLogger("pybroker.controller")

_LONGEST_CONNECT_S = 1.0
"""Longer than any connect whose packets are not lost."""
_PROBE_TIMEOUT_S = 0.2
"""A process that exits closes its listener and its connections one after the other: a connection opened in between is
reset well within this time."""
_PROBES = 5
_NO_SUCH_FAMILY = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class FailureDetector:
    """Detects failures of brokers that send heartbeats to this controller. Used from one event loop."""

    def __init__(
        self,
        address_of: Callable[[int, int], tuple[str, int] | None],
        died: Callable[[int, int], Awaitable[object]],
        unreachable: type[Exception],
        grace_ms: int,
    ) -> None:
        """Create a detector that knows no broker.

        Args:
            address_of: returns the inter-broker address of the broker with an id and epoch, None for a fenced or
                unregistered broker.
            died: fences a broker; raises `unreachable` if this node does not lead the quorum.
            unreachable: see `died`.
            grace_ms: the time from the end of a connection to the probe (`broker.death.grace.ms`). With -1 no broker is
                probed.
        """
        self._address_of = address_of
        self._died = died
        self._unreachable = unreachable
        self._grace_ms = grace_ms
        # Broker id and epoch by the connection's number. Invariants: each of the connections is open, or its end
        # is not reported yet; no two connections have the same broker and epoch.
        self._brokers: dict[int, tuple[int, int]] = {}
        # Invariant: the epoch of each broker whose last connection has ended.
        self._removed: dict[int, int] = {}
        self._probes: dict[int, asyncio.Task[None]] = {}

    def note(self, connection: int, broker_id: int, broker_epoch: int) -> None:
        """Record the connection of a broker's heartbeat; it replaces the broker's earlier connection.

        After a network partition the earlier connection may stay open on this side only, and proves nothing.
        """
        broker = broker_id, broker_epoch
        if self._brokers.get(connection) != broker:
            earlier = [other for other, sender in self._brokers.items() if sender == broker]
            for other in earlier:
                del self._brokers[other]
            self._brokers[connection] = broker
        self._removed.pop(broker_id, None)

    def is_removed(self, broker_id: int) -> bool:
        """Return whether a broker's connection has ended, and no heartbeat has arrived on another one since."""
        return broker_id in self._removed

    def connection_closed(self, connection: int) -> None:
        """Process the end of a connection; if a broker sent its heartbeats on it, probe that broker."""
        broker = self._brokers.pop(connection, None)
        if broker is None or broker in self._brokers.values():
            return
        broker_id, epoch = broker
        self._removed[broker_id] = epoch
        self._begin_probe(broker_id, epoch)

    def _begin_probe(self, broker_id: int, epoch: int) -> None:
        if self._grace_ms < 0 or broker_id in self._probes:
            return
        probe = self._probes[broker_id] = asyncio.ensure_future(self._probe(broker_id, epoch))
        probe.add_done_callback(lambda _: self._probes.pop(broker_id, None))

    def began_to_lead(self, brokers: Iterable[tuple[int, int]]) -> None:
        """Probe brokers, by id and epoch, that have sent no heartbeat to this controller, which has become active.

        If the previous controller failed together with a broker, nothing reports that broker's lost connection.
        """
        known = set(self._brokers.values())
        for broker_id, epoch in brokers:
            if (broker_id, epoch) not in known:
                self._removed[broker_id] = epoch
                self._begin_probe(broker_id, epoch)

    async def stop(self) -> None:
        """End all probes."""
        probes = list(self._probes.values())
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)

    async def _probe(self, broker_id: int, epoch: int) -> None:
        await asyncio.sleep(self._grace_ms / 1000)
        for _ in range(_PROBES):
            address = self._address_of(broker_id, epoch)
            if address is None or self._removed.get(broker_id) != epoch:
                return
            refuses = await _refuses(*address)
            if refuses is None:
                continue
            if not refuses or self._removed.get(broker_id) != epoch:
                return
            log.warning(
                "Fencing broker %d: its connection has ended, and %s:%d refuses connections", broker_id, *address
            )
            try:
                await self._died(broker_id, epoch)
            except self._unreachable as error:
                log.info("Broker %d is not fenced: %s", broker_id, error)
            return


def build_failure_detector(controller: Controller, inter_broker_listener: str, grace_ms: int) -> FailureDetector:
    """Return the failure detector of a node's controller."""

    def address_of(broker_id: int, epoch: int) -> tuple[str, int] | None:
        broker = controller.image.cluster.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            return None
        return broker.listeners.get(inter_broker_listener)

    def died(broker_id: int, epoch: int) -> Awaitable[object]:
        return controller.submit(SessionExpired(broker_id, epoch))

    detector = FailureDetector(address_of, died, ControllerError, grace_ms)

    def leads(begins: bool) -> None:  # the callback of `on_leadership`
        if begins:
            brokers = controller.image.cluster.brokers.values()
            detector.began_to_lead(
                (one.id, one.epoch) for one in brokers if not one.fenced and one.id != controller.node_id
            )

    controller.on_leadership(leads)
    return detector


async def _refuses(host: str, port: int) -> bool | None:
    """Return whether the port refuses connections; None for a connection that is reset at once: no proof."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # ValueError for a name that is too long
        return False
    outcomes = {await _refuses_at(str(address[0]), port) for *_, address in found} - {_Probed.NO_ROUTE}
    if outcomes == {_Probed.REFUSED}:
        return True
    return None if outcomes and outcomes <= {_Probed.REFUSED, _Probed.ENDED} else False


class _Probed(Enum):
    REFUSED = "nobody listens"
    ENDED = "a connection was opened and has ended"
    OTHER = "somebody listens, or nothing is known"
    NO_ROUTE = "this machine has no way to addresses of that kind"


async def _refuses_at(host: str, port: int) -> _Probed:
    try:
        async with asyncio.timeout(_LONGEST_CONNECT_S):
            reader, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return _Probed.REFUSED
    except ConnectionResetError:
        return _Probed.ENDED
    except (OSError, TimeoutError) as error:
        return _Probed.NO_ROUTE if error.errno in _NO_SUCH_FAMILY else _Probed.OTHER
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            await reader.read(1)
    except TimeoutError:
        return _Probed.OTHER
    except OSError:
        return _Probed.ENDED
    finally:
        writer.transport.abort()
    return _Probed.ENDED
