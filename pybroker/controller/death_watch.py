"""Brokers whose connection to the active controller has ended: is anybody there still?

Owns which connections brokers send their heartbeats by, and the probe of a listener where one has ended. Must not fence
anybody: the cluster machine does, by the event that a session's end is too.

A port that refuses is that of a process that has ended. All else (a connection that opens, one that does not) may be a
network that is slow, or parted: then the session's time decides, as in Kafka. A false alarm costs an election and no
record (docs/adr/0043-a-closed-connection-and-a-refused-port-are-a-death.md).
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
"""Longer than any connection takes that is not lost on its way."""
_PROBE_TIMEOUT_S = 0.2
"""A process that ends closes its listener and its connections one after the other: one that was opened in between is
reset well within this time."""
_PROBES = 5
_NO_SUCH_FAMILY = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})


class DeathWatch:
    """Watches the brokers that send heartbeats to this controller. Used from one event loop."""

    def __init__(
        self,
        address_of: Callable[[int, int], tuple[str, int] | None],
        died: Callable[[int, int], Awaitable[object]],
        unreachable: type[Exception],
        grace_ms: int,
    ) -> None:
        """`address_of` returns where the broker of an id and epoch is reached by others, None for one that is fenced or
        forgotten. `died` has it fenced, and raises `unreachable` when this node does not lead the quorum any more.
        Nobody is watched with a `grace_ms` of -1 (`broker.death.grace.ms`).
        """
        self._address_of = address_of
        self._died = died
        self._unreachable = unreachable
        self._grace_ms = grace_ms
        # Broker id and epoch by the connection's number. Invariants: the connection was open when its end was last
        # asked about, so there are no more of them than connections; no two connections have the same broker and epoch.
        self._brokers: dict[int, tuple[int, int]] = {}
        # Invariant: the epoch of each broker whose last connection has ended.
        self._gone: dict[int, int] = {}
        self._probes: dict[int, asyncio.Task[None]] = {}

    def note(self, connection: int, broker_id: int, broker_epoch: int) -> None:
        """Note that a heartbeat of a broker counted that came by this connection.

        The broker sends by no other one then. After a network cut the earlier connection stays open at this end alone:
        it is no sign of life.
        """
        broker = broker_id, broker_epoch
        if self._brokers.get(connection) != broker:
            earlier = [other for other, sender in self._brokers.items() if sender == broker]
            for other in earlier:
                del self._brokers[other]
            self._brokers[connection] = broker
        self._gone.pop(broker_id, None)

    def is_gone(self, broker_id: int) -> bool:
        """Return whether a broker's connection has ended, and it has come by no other since."""
        return broker_id in self._gone

    def connection_closed(self, connection: int) -> None:
        """Note that a connection has ended; if a broker sent its heartbeats by it, probe that broker."""
        broker = self._brokers.pop(connection, None)
        if broker is None or broker in self._brokers.values():
            return
        broker_id, epoch = broker
        self._gone[broker_id] = epoch
        self._begin_probe(broker_id, epoch)

    def _begin_probe(self, broker_id: int, epoch: int) -> None:
        if self._grace_ms < 0 or broker_id in self._probes:
            return
        probe = self._probes[broker_id] = asyncio.ensure_future(self._probe(broker_id, epoch))
        probe.add_done_callback(lambda _: self._probes.pop(broker_id, None))

    def began_to_lead(self, brokers: Iterable[tuple[int, int]]) -> None:
        """Probe brokers, by id and epoch, that have sent no heartbeat to this controller, which is active from now on.

        A controller that ends with its broker reports no lost connection, so the next controller probes by itself.
        """
        known = set(self._brokers.values())
        for broker_id, epoch in brokers:
            if (broker_id, epoch) not in known:
                self._gone[broker_id] = epoch
                self._begin_probe(broker_id, epoch)

    async def stop(self) -> None:
        """Look for nobody any more."""
        probes = list(self._probes.values())
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)

    async def _probe(self, broker_id: int, epoch: int) -> None:
        await asyncio.sleep(self._grace_ms / 1000)
        for _ in range(_PROBES):
            address = self._address_of(broker_id, epoch)
            if address is None or self._gone.get(broker_id) != epoch:
                return
            refuses = await _refuses(*address)
            if refuses is None:
                continue
            if not refuses or self._gone.get(broker_id) != epoch:
                return
            log.warning(
                "Fencing broker %d: its connection has ended, and %s:%d refuses connections", broker_id, *address
            )
            try:
                await self._died(broker_id, epoch)
            except self._unreachable as error:
                log.info("Broker %d is not fenced: %s", broker_id, error)
            return


def build_death_watch(controller: Controller, inter_broker_listener: str, grace_ms: int) -> DeathWatch:
    """Return the watch of a node's controller over the brokers that send it heartbeats."""

    def address_of(broker_id: int, epoch: int) -> tuple[str, int] | None:
        broker = controller.image.cluster.brokers.get(broker_id)
        if broker is None or broker.epoch != epoch or broker.fenced:
            return None
        return broker.listeners.get(inter_broker_listener)

    def died(broker_id: int, epoch: int) -> Awaitable[object]:
        return controller.submit(SessionExpired(broker_id, epoch))

    watch = DeathWatch(address_of, died, ControllerError, grace_ms)

    def leads(begins: bool) -> None:  # what `on_leadership` calls
        if begins:
            brokers = controller.image.cluster.brokers.values()
            watch.began_to_lead(
                (one.id, one.epoch) for one in brokers if not one.fenced and one.id != controller.node_id
            )

    controller.on_leadership(leads)
    return watch


async def _refuses(host: str, port: int) -> bool | None:
    """Return whether nobody listens there; None for a connection that ended at once, which says neither."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):  # ValueError for a name that cannot be one, as it is too long
        return False
    answers = {await _refuses_at(str(address[0]), port) for *_, address in found} - {_Answer.CANNOT_ASK}
    if answers == {_Answer.REFUSED}:
        return True
    return None if answers and answers <= {_Answer.REFUSED, _Answer.ENDED} else False


class _Answer(Enum):
    REFUSED = "nobody listens"
    ENDED = "a connection was opened and has ended"
    OTHER = "somebody listens, or nothing is known"
    CANNOT_ASK = "this machine has no way to addresses of that kind"


async def _refuses_at(host: str, port: int) -> _Answer:
    try:
        async with asyncio.timeout(_LONGEST_CONNECT_S):
            reader, writer = await asyncio.open_connection(host, port)
    except ConnectionRefusedError:
        return _Answer.REFUSED
    except ConnectionResetError:
        return _Answer.ENDED
    except (OSError, TimeoutError) as error:
        return _Answer.CANNOT_ASK if error.errno in _NO_SUCH_FAMILY else _Answer.OTHER
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            await reader.read(1)
    except TimeoutError:
        return _Answer.OTHER
    except OSError:
        return _Answer.ENDED
    finally:
        writer.transport.abort()
    return _Answer.ENDED
