"""What a handler may use: the services of the node, and where its request came from.

Owns nothing; it is the list of what handlers depend on. Must not contain behaviour of an API.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from pybroker.controller.errors import NotControllerError
from pybroker.machine.reply import Reply
from pybroker.protocol.listener_role import ListenerRole
from pybroker.security.principals import ANONYMOUS, Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.broker.broker_channel import BrokerChannels
    from pybroker.broker.producer_ids import ProducerIds
    from pybroker.broker.recent_deaths import RecentDeaths
    from pybroker.broker.suspects import Suspects
    from pybroker.broker.transaction_verification import TransactionVerification
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.channel import ControllerChannel, OwnController
    from pybroker.controller.cluster.settings import ConfigRules
    from pybroker.controller.death_watch import DeathWatch
    from pybroker.controller.service import Controller
    from pybroker.coordinator.group.service import GroupCoordinator
    from pybroker.coordinator.runtime.markers import Markers
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.handlers.encoded_topics import EncodedTopics
    from pybroker.machine.slices import Slices
    from pybroker.metadata.image import MetadataImage
    from pybroker.replica.deletions import Deletions
    from pybroker.replica.no_partitions import NoPartitions
    from pybroker.replica.publisher import PartitionPublisher
    from pybroker.security.authorizer import Judge
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.quotas import RequestTime
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.moves import LogMoves
    from pybroker.storage.partitions import Partitions
    from pybroker.storage.retention import Retention
    from pybroker.telemetry.service import Telemetry


class Origin(Protocol):
    """The request's envelope, as the data plane read it."""

    @property
    def connection(self) -> int:
        """Number of the connection."""

    @property
    def api_key(self) -> int:
        """Key of the API."""

    @property
    def api_version(self) -> int:
        """Version the client chose."""

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection."""

    @property
    def local_host(self) -> str:
        """Address that the client dialled."""

    @property
    def local_port(self) -> int:
        """Port that the client dialled."""

    @property
    def peer_host(self) -> str:
        """The client's address."""

    @property
    def peer_port(self) -> int:
        """The client's port; 0 where it is not known."""

    @property
    def software(self) -> tuple[str, str] | None:
        """What the client says that it is (KIP-511), name and version; None where it does not say."""

    @property
    def principal(self) -> tuple[str, str] | None:
        """Who the client is, as kind and name; None while it has not said."""


class Services(NamedTuple):
    """The parts of the node that handlers call."""

    config: BrokerConfig
    config_rules: ConfigRules  # by what this node was started with
    cluster_id: str
    image: Callable[[], MetadataImage]
    controller: ControllerChannel
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    partitions: Partitions
    moves: LogMoves
    publisher: PartitionPublisher | NoPartitions
    producer_ids: ProducerIds
    retention: Retention
    deletions: Deletions
    slices: Slices
    topics: EncodedTopics
    advertised: Mapping[str, tuple[str, int]]  # by listener; a listener not in it advertises what the client dialled
    own_controller: OwnController | None = None  # on listeners of controllers
    recent_deaths: RecentDeaths | None = None  # of a node that is not alone; they are named to clients for a moment
    suspects: Suspects | None = None  # of a node that votes; answers that would name them as leaders wait
    death_watch: DeathWatch | None = None  # of a node with a controller; heartbeats of brokers are noted with it
    voter: Controller | None = None  # this node's own controller, where it has one
    tokens: DelegationTokens | None = None  # of a node that has the secret of delegation tokens
    sasl: SaslServer | None = None  # of a node with a listener that asks who its clients are
    controller_listeners: frozenset[str] = frozenset()  # those of controller.listener.names
    mutations: MutationQuotas | None = None  # of the node: partitions that clients may have made and deleted
    authorizer: Judge | None = None  # who decides what clients may do; without one they may do everything
    markers: Markers | None = None  # of a broker: ends transactions in its partitions
    verification: TransactionVerification | None = None  # of a broker: asks coordinators of transactions
    brokers: BrokerChannels | None = None  # of a broker: the ways to other brokers, and to itself
    telemetry: Telemetry | None = None  # of a broker with receivers of clients' metrics
    time_of: Callable[[Origin], RequestTime | None] | None = None  # what requests' time is counted by, for quotas


class Contexts:
    """Makes the context of every request, of the services and the image that are in force when it comes."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def reconfigure(self, config: BrokerConfig) -> None:
        """Take the broker's changed settings; they hold for every request from now on."""
        self._services = self._services._replace(config=config)

    @property
    def services(self) -> Services:
        """What is in force now."""
        return self._services

    def build(self, origin: Origin) -> RequestContext:
        """Return the context of a request."""
        said = origin.principal
        principal = ANONYMOUS if said is None else Principal(*said)
        services = self._services
        time = None if services.time_of is None else services.time_of(origin)
        return RequestContext(services, origin, services.image(), origin.api_version, principal, time=time)


class RequestContext(msgspec.Struct, eq=False, gc=False):
    """One request's surroundings. `image` is read once, so a handler sees one state of the cluster.

    What a request's head says is read when it is asked for: most requests need none of it.
    """

    services: Services
    origin: Origin
    image: MetadataImage
    version: int
    """Version of the request and of its response."""
    principal: Principal = ANONYMOUS
    """Who the request is from, as the connection has proved it; nobody in particular before, and on PLAINTEXT."""
    forwarded_by_token: bool | None = None
    """Of a request that a broker forwarded, whether its client authenticated by a delegation token; None of others."""
    ends_connection: bool = False
    """Whether the connection is closed once the response is sent."""
    time: RequestTime | None = None
    """The time that it has taken so far; None where no quota counts that."""
    wait_ms: int = 0
    """How long its client is to wait by an answer that another node has made: its bytes are sent as they are."""

    @property
    def listener(self) -> str:
        """Name of the listener that accepted the connection; answers name brokers by their endpoints of that name."""
        return self.origin.listener

    @property
    def by_token(self) -> bool:
        """Whether the client authenticated by a delegation token."""
        if self.forwarded_by_token is not None:
            return self.forwarded_by_token
        return self.services.sasl is not None and self.services.sasl.is_by_token(self.origin.connection)

    @property
    def role(self) -> ListenerRole:
        """Role of that listener: `BROKER` or `CONTROLLER`."""
        of_controllers = self.origin.listener in self.services.controller_listeners
        return ListenerRole.CONTROLLER if of_controllers else ListenerRole.BROKER

    def end_after(self, response: Any) -> Reply:
        """Answer after `connection.failed.authentication.delay.ms`, and close the connection (KIP-306)."""
        self.ends_connection = True
        reply = Reply()
        delay_s = self.services.config.connection_failed_authentication_delay_ms / 1000
        asyncio.get_running_loop().call_later(delay_s, reply, response, None)
        return reply

    @property
    def own_controller(self) -> OwnController:
        """This node's own controller; what it decides raises `NotControllerError` while it does not lead."""
        own = self.services.own_controller
        if own is None:
            raise NotControllerError("this node has no controller")
        return own

    @property
    def authorizer(self) -> Judge | None:
        """Who decides what the client may do, by the newest entries; None where everything is allowed."""
        judge = self.services.authorizer
        if judge is not None:
            judge.follow(self.services.image().acls)
        return judge

    @property
    def api_key(self) -> int:
        """Key of the API that is asked."""
        return self.origin.api_key

    @property
    def client_id(self) -> str | None:
        """What the client calls itself."""
        return self.origin.client_id

    @property
    def client_host(self) -> str:
        """The client's address."""
        return self.origin.peer_host
