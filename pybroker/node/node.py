"""Node: a broker, a controller, or both in one process.

Owns the steps of a start, and the errors that prevent it. Must not know the parts of a role.

Start: lock directories, listen, format, replay metadata, register, open partitions, serve. Clients that connect before
the last step wait for it. A start that fails before formatting leaves the directories unchanged. Stop:
`pybroker.broker.shut_down` owns the order; each part registers its shutdown where it is built.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pybroker.broker.broker_state import BrokerState
from pybroker.broker.failures import BrokerFailedError
from pybroker.broker.life import Life
from pybroker.broker.registration import RegistrationRefusedError
from pybroker.controller.errors import ControllerError
from pybroker.controller.quorum.batches import DIRECTORY_NAME
from pybroker.controller.quorum.log.lost_records import clear_acceptance
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.metadata.errors import MetadataError
from pybroker.net import descriptors
from pybroker.net.listeners import ListenError, OpenListener
from pybroker.node.admin import build_admin
from pybroker.node.broker_part import build_broker
from pybroker.node.controller_access import ControllerAccess
from pybroker.node.controller_part import build_controller, listen_for_nodes
from pybroker.node.exporting import begin_export
from pybroker.node.foundation import Foundation
from pybroker.node.listening import listen
from pybroker.node.measuring import of_state
from pybroker.node.observer_part import build_observer, start_observer
from pybroker.node.plugins import load_plugins
from pybroker.node.serving import serve
from pybroker.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pybroker.admin_http.server import AdminServer
    from pybroker.broker.failures import Failures
    from pybroker.broker.live_config import Reread
    from pybroker.broker.shut_down import ShutDown
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.cluster.events import ScramUpsertion
    from pybroker.controller.service import Controller
    from pybroker.handlers.context import RequestContext
    from pybroker.machine.clock import Clock
    from pybroker.metadata.publishers import Publisher
    from pybroker.net.native import ControlRequest, DataPlane
    from pybroker.net.tls import TlsListeners
    from pybroker.node.broker_part import BrokerPart
    from pybroker.node.controller_part import ControllerListening, ControllerPart
    from pybroker.node.listening import Listening
    from pybroker.telemetry.service import Telemetry

_EXPECTED = (
    OSError,
    StorageError,
    ListenError,
    ControllerError,
    MetadataError,
    RegistrationRefusedError,
    BrokerFailedError,
    descriptors.TooFewDescriptorsError,
)
"""Errors that prevent a start and are not bugs."""


class NodeError(Exception):
    """The broker cannot start or continue. The text is one line with the cause and its location."""


class Node:
    """One broker and controller. Used from one event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock = SYSTEM_CLOCK,
        intercepted: Callable[[ControlRequest, RequestContext], None] | None = None,
    ) -> None:
        """`intercepted` receives the requests of the APIs set by `data_plane.intercept`, and decides about them."""
        self.config = config
        self._clock = clock
        self._intercepted = intercepted or (lambda *_: None)
        self._life = Life()
        # Invariant: None exactly while no requests are served.
        self._run: _Run | None = None

    @property
    def state(self) -> BrokerState:
        """The broker state."""
        return self._life.state

    @property
    def data_plane(self) -> DataPlane:
        """The data plane of the broker. Raises NodeError if it does not run."""
        return self._running().broker.listening.data_plane

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Host and port of the admin listener, None without one. Raises NodeError if the node does not run."""
        return self._running().admin_address

    @property
    def tls(self) -> TlsListeners:
        """The TLS settings of the broker's listeners. Raises NodeError if the broker does not run."""
        return self._running().broker.listening.tls

    @property
    def telemetry(self) -> Telemetry | None:
        """The service for client telemetry, or None without receivers.

        Raises NodeError if the node does not run, or has no broker role.
        """
        return self._running().broker.plugins.telemetry

    async def make_scram_users(self, users: Sequence[ScramUpsertion]) -> None:
        """Set SCRAM credentials of users, one mechanism each, as AlterUserScramCredentials does.

        Raises NodeError if the broker does not run, and RuntimeError if the controller rejects a credential.
        """
        for altered in await self._running().broker.access.channel.own().alter_scram_users((), users):
            if altered.error_code:
                raise RuntimeError(f"user {altered.name!r}: {altered.error_message}")

    async def start(self) -> tuple[OpenListener, ...]:
        """Start the node and return its listeners when it serves requests.

        Raises NodeError after releasing all resources.
        """
        run = _Run(self.config, self._clock, self._intercepted, lambda: self._life.state)
        try:
            await self._life.start(run)
        except _EXPECTED as error:
            raise NodeError(str(error)) from error
        self._run = run
        return run.listeners

    async def stop(self) -> None:
        """Stop cleanly: acknowledged records are on disk, and the next start needs no recovery."""
        run = self._running()
        await self._life.stop(run)
        self._run = None

    def reload(self, config: BrokerConfig) -> Reread:
        """Apply the settings that may change while the node runs, and reload certificates whose files have changed.

        Raises ConfigError, and NodeError if the node does not run.
        """
        return self._running().reload(config)

    async def failed(self) -> NodeError:
        """Wait until the broker cannot continue, and return the reason."""
        return NodeError(await self._running().failures.reason())

    def _running(self) -> _Run:
        if self._run is None:
            raise NodeError("the broker is not running")
        return self._run


class _Run:
    """One run of a node with its roles."""

    def __init__(
        self,
        config: BrokerConfig,
        clock: Clock,
        intercepted: Callable[[ControlRequest, RequestContext], None],
        state: Callable[[], BrokerState],
    ) -> None:
        foundation = self._foundation = Foundation(config, clock)
        foundation.metrics.add(lambda: of_state(state()))
        self._intercepted = intercepted
        self._state = state
        self._plugins = load_plugins(foundation) if config.is_broker else None
        # Each is None before its step of the start, and if the node does not have the role.
        self._admin: AdminServer | None = None
        self._for_nodes: ControllerListening | None = None
        self._for_clients: Listening | None = None
        self._controller: ControllerPart | None = None
        self._broker: BrokerPart | None = None

    @property
    def shut_down(self) -> ShutDown:
        """The shutdown steps of the parts built so far."""
        return self._foundation.shut_down

    @property
    def listeners(self) -> tuple[OpenListener, ...]:
        """The broker listeners, or the controller listeners of a node without the broker role."""
        if self._for_clients is not None:
            return self._for_clients.listeners.all
        return () if self._for_nodes is None else self._for_nodes.listeners

    @property
    def broker(self) -> BrokerPart:
        """The node's broker. Raises NodeError if the node does not have the broker role."""
        if self._broker is None:
            raise NodeError("this node is a controller alone: it has no partitions and no clients")
        return self._broker

    @property
    def failures(self) -> Failures:
        """The failures that end the node."""
        return self._foundation.failures

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Host and port of the admin listener, None without one."""
        return None if self._admin is None else self._admin.address

    async def listen(self) -> None:
        """Lock the directories, open the listeners, and format the directories that are not formatted."""
        foundation = self._foundation
        await foundation.lock()
        self._admin = build_admin(foundation, self._not_ready)
        if foundation.config.is_controller:
            self._for_nodes = listen_for_nodes(foundation)
        if self._plugins is not None:
            self._for_clients = listen(foundation, self._plugins.authorizer)
        foundation.identify()
        begin_export(foundation)

    async def join(self) -> None:
        """Join the quorum as a voter or an observer, and register the broker. Partitions are opened meanwhile."""
        foundation = self._foundation
        if foundation.config.is_controller:
            part = self._controller = build_controller(foundation, self._for_nodes)
            access = ControllerAccess(foundation, part.controller, part.local)
            await part.start(self._build_broker(access, part.controller), access)
        else:
            observer = build_observer(foundation)
            access = ControllerAccess(foundation, observer, None)
            await start_observer(foundation, observer, self._build_broker(access, None))
        if self._broker is not None:
            await self._broker.register()

    def _build_broker(self, access: ControllerAccess, controller: Controller | None) -> list[Publisher]:
        """Build the broker if the node has that role, and return the metadata publishers in their order."""
        publishers: list[Publisher] = [self._foundation.live]
        if access.channels is not None:
            publishers.append(access.channels)
        if self._plugins is not None and self._for_clients is not None:
            self._broker = build_broker(self._foundation, self._plugins, self._for_clients, access, controller)
            publishers += self._broker.publishers
        return publishers

    async def serve(self) -> None:
        """Serve requests."""
        if self._broker is not None:
            await serve(self._broker, self._intercepted)
        if self._controller is not None:
            # The partitions of lost topics are renamed now. Another loss of metadata needs another acceptance.
            clear_acceptance(self._foundation.directories.metadata.path / DIRECTORY_NAME)

    def reload(self, config: BrokerConfig) -> Reread:
        """Apply the settings that may change while the node runs. Raises ConfigError."""
        reread = self._foundation.live.reread(config)
        for listening in (self._for_nodes, self._for_clients):
            if listening is not None:
                listening.tls.reload_changed_files(datetime.now(UTC))
        return reread

    async def leave(self) -> None:
        """Move leadership to other brokers before any part stops."""
        if self._broker is not None:
            await self._broker.leave()

    def _not_ready(self) -> str | None:
        """Return why the node does not serve, or None if it does."""
        state = self._state()
        if state is not BrokerState.RUNNING:
            return f"the node is {state.name.lower().replace('_', ' ')}"
        if self._broker is not None:
            return self._broker.not_ready
        if self._controller is not None and self._controller.controller.leader_id < 0:
            return "the quorum has no leader"
        return None
