"""This broker's registration with the controller: its epoch, and its reports on log directories.

Owns the incarnation id, and the broker epoch of every later request to the controller (KIP-631). Must not decide the
effects of a registration or a report: the controller does. A single node registers unfenced and sends no heartbeats; in
a cluster `pybroker/broker/heartbeat.py` registers.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from typing import TYPE_CHECKING, Protocol

import msgspec

from pybroker.broker.directory_reports import DirectoryReports
from pybroker.metadata.features import SUPPORTED_FEATURES
from pybroker.metadata.replica_directories import LOST_DIRECTORY
from pybroker.storage.log_dirs.meta_properties import id_bytes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.errors import ErrorCode
    from pybroker.storage.log_dirs.directories import Directories

log = logging.getLogger("pybroker.broker")

_REPORT_AGAIN_S = 0.1
_ATTEMPTS_A_WARNING = 300


class RegistrationRefusedError(Exception):
    """The controller rejected the registration. The text is one line with the reason."""

    def __init__(self, text: str, code: ErrorCode) -> None:
        super().__init__(text)
        self.code = code


class Reported(Protocol):
    """The controller's response to a report."""

    @property
    def error_code(self) -> ErrorCode:
        """NONE, or why the report is rejected."""

    @property
    def error_message(self) -> str | None:
        """The error message."""


class Registered(Protocol):
    """The controller's response to a registration."""

    @property
    def error_code(self) -> ErrorCode:
        """NONE, or why the registration is rejected."""

    @property
    def error_message(self) -> str | None:
        """The error message."""

    @property
    def broker_epoch(self) -> int:
        """The epoch of this incarnation."""


class Registrar(Protocol):
    """The part of the controller for registrations and reports. Every method returns when its records are committed."""

    async def register_broker(
        self,
        broker_id: int,
        *,
        incarnation_id: bytes,
        listeners: Mapping[str, tuple[str, int]],
        security_protocols: Mapping[str, int],
        rack: str | None,
        log_dirs: tuple[bytes, ...],
        features: Mapping[str, tuple[int, int]],
        fenced: bool,
        previous_broker_epoch: int,
    ) -> Registered:
        """Register a broker."""

    async def assign_replicas(
        self, broker_id: int, broker_epoch: int, directories: Mapping[tuple[bytes, int], bytes]
    ) -> Reported:
        """Record the log directories of replicas of a broker, by topic id and partition."""

    async def fail_log_directories(self, broker_id: int, broker_epoch: int, directories: Sequence[bytes]) -> Reported:
        """Record that log directories of a broker have failed."""

    async def allocate_producer_ids(self, broker_id: int, broker_epoch: int) -> range:
        """Allocate a block of producer ids to a broker."""


class Endpoints(msgspec.Struct, frozen=True):
    """The endpoints in a broker's registration."""

    listeners: Mapping[str, tuple[str, int]]
    """Advertised (host, port) by listener name."""
    protocols: Mapping[str, int]
    """Kafka's number of the security protocol, by listener name."""
    rack: str | None


class Unreported(msgspec.Struct, frozen=True):
    """The handling of a failed log directory that cannot be reported to a controller."""

    within_ms: int
    """Time in which the report is retried."""
    give_up: Callable[[str], None]
    """Called after that time, with one line that explains why the broker cannot continue."""


class Registration:
    """The registration of one run of a broker. Used from the event loop."""

    def __init__(
        self,
        node_id: int,
        directories: Directories,
        registrar: Callable[[], Registrar],
        unreachable: type[Exception],
        unreported: Unreported,
    ) -> None:
        """`registrar` returns the active controller.

        `unreachable` is the exception for a controller that cannot be reached.
        """
        self._node_id = node_id
        self._directories = directories
        self._registrar = registrar
        self._unreachable = unreachable
        self._unreported = unreported
        # The epoch of the previous run if it ended cleanly. Read here, since opening the logs deletes the epoch's file.
        self._previous_epoch = directories.last_broker_epoch
        self._incarnation_id = os.urandom(16)
        self._reports = DirectoryReports()
        self.epoch = -1
        """The broker epoch in force, -1 before the broker is registered."""

    async def register(self, endpoints: Endpoints, *, fenced: bool = False) -> None:
        """Register with the online log directories, and start sending reports. Raises RegistrationRefusedError.

        A broker that sends heartbeats registers `fenced`.
        """
        online = self._directories.online
        registered = await self._registrar().register_broker(
            self._node_id,
            incarnation_id=self._incarnation_id,
            listeners=endpoints.listeners,
            security_protocols=endpoints.protocols,
            rack=endpoints.rack,
            log_dirs=tuple(id_bytes(directory.meta.directory_id) for directory in online if directory.meta),
            features=SUPPORTED_FEATURES,
            fenced=fenced,
            previous_broker_epoch=self._previous_epoch,
        )
        if registered.error_code:
            raise RegistrationRefusedError(
                f"the controller rejected this broker: {registered.error_message}", registered.error_code
            )
        self.epoch = registered.broker_epoch
        self._reports.registered()

    def follow(self, image: MetadataImage) -> bool:
        """Take over a newer epoch of this incarnation from an image. Return whether there was one.

        A registration whose response was lost is sent again, and may be committed twice. If the broker then used the
        older of the two epochs, the controller would reject all its requests.
        """
        known = image.cluster.brokers.get(self._node_id)
        if known is None or known.incarnation_id != self._incarnation_id or known.epoch <= self.epoch:
            return False
        log.info("Registered again with broker epoch %d; the previous epoch was %d", known.epoch, self.epoch)
        self.epoch = known.epoch
        return True

    async def allocate_producer_ids(self) -> range:
        """Return a block of producer ids allocated to this broker."""
        return await self._registrar().allocate_producer_ids(self._node_id, self.epoch)

    def report_placed(self, placed: Mapping[tuple[bytes, int], bytes]) -> None:
        """Report the log directory ids of partitions, by topic id and index."""
        self._report(lambda: self._registrar().assign_replicas(self._node_id, self.epoch, placed))

    async def report_lost(self, replicas: Sequence[tuple[bytes, int]]) -> None:
        """Report the replicas, by topic id and index, that lost records.

        Retries until the controller accepts the report.

        The controller removes them from the ISR where another replica can lead (KIP-966). Kafka's AssignReplicasToDirs
        with `DirectoryId.LOST` has this effect. A later report of their directories lets them catch up.
        """
        attempts = itertools.count()
        while replicas:
            try:
                directories = dict.fromkeys(replicas, LOST_DIRECTORY)
                reported = await self._registrar().assign_replicas(self._node_id, self.epoch, directories)
            except self._unreachable as error:
                failure = str(error)
            else:
                if not reported.error_code:
                    return
                failure = f"{reported.error_code.name}: {reported.error_message or reported.error_code.message}"
            # Log a warning every 30 s. The broker stays fenced meanwhile.
            level = logging.DEBUG if next(attempts) % _ATTEMPTS_A_WARNING else logging.WARNING
            log.log(level, "Failed to report %d replicas that lost records: %s; retrying", len(replicas), failure)
            await asyncio.sleep(_REPORT_AGAIN_S)

    def report_failed_directories(self) -> None:
        """Report all failed log directories; the controller ignores those that were reported before.

        After `log.dir.failure.timeout.ms` the broker stops: a controller without the report may elect it leader of
        partitions that it cannot serve (KIP-858).
        """
        offline = [it for it in self._directories.logs if it.offline and it.meta is not None]
        ids = [id_bytes(it.meta.directory_id) for it in offline if it.meta is not None]
        within_ms = self._unreported.within_ms
        paths = ", ".join(str(it.path) for it in offline)
        reason = (
            f"no controller took within log.dir.failure.timeout.ms={within_ms} the report that a log directory failed: "
            f"{paths}"
        )
        self._reports.insist(
            lambda number: self._report_failed(ids, is_first=number == 1),
            within_ms / 1000,
            lambda: self._unreported.give_up(reason),
        )

    async def stop(self) -> None:
        """Send no further report, and wait for the one in flight."""
        await self._reports.stop()

    async def _report_failed(self, ids: Sequence[bytes], *, is_first: bool) -> bool:
        """Send a report of failed directories. Return whether the controller accepted it."""
        try:
            reported = await self._registrar().fail_log_directories(self._node_id, self.epoch, ids)
        except self._unreachable as error:
            failure = str(error)
        else:
            if not reported.error_code:
                return True
            failure = f"{reported.error_code.name}: {reported.error_message or reported.error_code.message}"
        level = logging.WARNING if is_first else logging.DEBUG
        log.log(level, "Failed to report failed log directories to the controller: %s; retrying", failure)
        return False

    def _report(self, send: Callable[[], Awaitable[object]]) -> None:
        async def report() -> None:
            try:
                await send()
            except self._unreachable as error:
                # The next registration contains the online directories.
                log.warning("Failed to report the log directories to the controller: %s", error)

        self._reports.add(report)
