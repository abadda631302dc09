"""The controller of a node: its voter of the metadata quorum, and the listeners of controllers.

Owns the building of the controller, and of the data plane and pipeline of its own that answer other controllers, and
brokers: they are served before this node's broker is ready, and beside whatever its clients do. Must not know
partitions or clients. A single node has a controller and no listener for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.controller.cluster.settings import NEVER, ClusterSettings, TokenSettings
from pybroker.controller.death_watch import build_death_watch
from pybroker.controller.errors import ControllerError
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.settings import QuorumSettings, VoterAddress
from pybroker.controller.quorum.voter_set import VoterEndpoint
from pybroker.controller.registration import ControllerRegistration, Reachable
from pybroker.controller.service import Controller
from pybroker.controller.unclean_elections import UncleanElections
from pybroker.handlers.context import Contexts, ControllerContext, ControllerServices
from pybroker.handlers.served import served_apis
from pybroker.machine.clock import SYSTEM_CLOCK
from pybroker.machine.slices import Slices
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.events import EventTable, log_line
from pybroker.net.listeners import OpenListener, advertised, open_listeners
from pybroker.net.native import ConnectionClosed, DataPlane, LogDirectoryFailed, LogLine, PeerCertificate
from pybroker.net.pipeline import Pipeline
from pybroker.net.tls import TlsListeners
from pybroker.node.snapshot_policy import build_snapshot_policy
from pybroker.protocol.listener_role import ListenerRole
from pybroker.replica.no_partitions import NoPartitions
from pybroker.serving import Users, build_authorizer, build_sasl_server, build_tokens, limits_of
from pybroker.storage.meta_properties import id_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.broker.failures import Failures
    from pybroker.broker.live_config import LiveConfig
    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.cluster.settings import ConfigRules
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.metadata.publishers import Publisher
    from pybroker.node.controller_access import ControllerAccess
    from pybroker.node.foundation import Foundation
    from pybroker.security.mutation_quotas import MutationQuotas
    from pybroker.security.sasl.server import SaslServer

_NETWORK_THREADS = 1
"""Controllers answer in Python; one thread reads and writes for them."""


class ControllerPart:
    """One run of a node's controller."""

    controller: Controller
    data_plane: DataPlane

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self.listeners: tuple[OpenListener, ...] = ()
        self.tls = TlsListeners({})
        # Whether the metadata log is open: before that there is no quorum and no image.
        self.is_open = False
        # None where no listener asks who its clients are.
        self.sasl: SaslServer | None = None

    @property
    def config(self) -> BrokerConfig:
        """The node's settings."""
        return self._foundation.config

    @property
    def cluster_id(self) -> str:
        """The cluster that the node's directories belong to."""
        return self._foundation.cluster_id

    @property
    def live(self) -> LiveConfig:
        """The node's settings in force."""
        return self._foundation.live

    @property
    def mutations(self) -> MutationQuotas:
        """How many partitions clients may have made and deleted, whichever listener they come by."""
        return self._foundation.mutations

    @property
    def failures(self) -> Failures:
        """What the node does not survive."""
        return self._foundation.failures

    def listen(self) -> None:
        """Open the listeners of controllers, if there are any; raises ListenError."""
        config, end = self.config, self._foundation.shut_down.add
        if not config.controller_endpoints:
            return
        settings = build_data_plane_settings(config, self._foundation.shares, network_threads=_NETWORK_THREADS)
        data_plane = self.data_plane = DataPlane(settings)
        end(Stage.CONTROLLER_REQUESTS, data_plane, data_plane.stop_accepting)
        end(Stage.CONTROLLER_CONNECTIONS, data_plane, lambda: close_connections(data_plane))
        tls = config.tls_of_listeners()
        self.tls = TlsListeners(
            {one.endpoint.name: tls[one.endpoint.name] for one in config.controller_endpoints if one.is_encrypted},
            self._foundation.principal_builder,
        )
        self.listeners = open_listeners(
            data_plane,
            config.controller_endpoints,
            backlog=config.socket_listen_backlog_size,
            unauthenticated_max_bytes=config.sasl_server_max_receive_size,
            tls=self.tls,
        )
        self.tls.start(data_plane)
        end(Stage.CONTROLLER_REQUESTS, self.tls, self.tls.stop)
        self.live.subscribe(lambda changed: self.tls.reconfigure(changed.tls_of_listeners()))

    def build(self) -> Controller:
        """Build the controller, which is not open."""
        failures, kind = self.failures, Controller
        if self.config.is_measured:
            # Its histograms are not imported where nobody reads them.
            from pybroker.controller.measured import MeasuredController

            kind = MeasuredController
        self.controller = kind(
            build_cluster_settings(self.config, self.live),
            self._quorum_settings(),
            lambda error: failures.end(f"the metadata log failed: {error}"),
        )
        self.death_watch = build_death_watch(
            self.controller, self.config.inter_broker_listener, self.config.broker_death_grace_ms
        )
        self.local = LocalChannel(self.controller, self.death_watch.is_gone)
        controller = self.controller
        self.unclean_elections = UncleanElections(lambda: controller.is_leader)
        return self.controller

    async def start(self, publishers: Iterable[Publisher], access: ControllerAccess) -> None:
        """Open the metadata log, which `publishers` follow, answer other nodes, and take part in elections."""
        end, controller = self._foundation.shut_down.add, self.controller
        followers: list[Publisher] = [*publishers, self.unclean_elections, self.local.former_isr]
        if self.listeners:
            registration = self._build_registration(access)
            end(Stage.REPORTS, registration, registration.stop)
            followers.append(registration)
        await controller.open(followers)
        self.is_open = True
        end(Stage.METADATA_LOG, controller, controller.stop)
        end(Stage.METADATA_LOG, self.death_watch, self.death_watch.stop)
        if self.listeners:
            wall_ms, config = self._foundation.clock.wall_ms, self.config
            tokens = build_tokens(config, lambda: controller.image, wall_ms)
            users = Users(lambda: controller.scram, tokens, self._foundation.principal_builder)
            self.sasl = build_sasl_server(
                self.live, self.data_plane, users, wall_ms, lambda changed: changed.controller_endpoints
            )
            if self.sasl is not None:
                end(Stage.WORKERS, self.sasl, self.sasl.close)
            pipeline = self._build_pipeline(access.channel)
            end(Stage.CONTROLLER_REQUESTS, pipeline, lambda: finish_requests(pipeline))
            end(Stage.CONTROLLER_CONNECTIONS, pipeline, pipeline.stop)
            pipeline.start()
        await controller.start()

    def _build_pipeline(self, channel: SwitchingChannel) -> Pipeline:
        """Return the pipeline of the listeners, not started."""
        contexts = Contexts(ControllerContext, self._build_services(channel))
        self.live.subscribe(contexts.reconfigure)
        watch, sasl = self.death_watch, self.sasl
        events = EventTable()
        events.on(LogLine, log_line)
        events.on(LogDirectoryFailed, lambda event: self.failures.lose_directory(event.directory, event.error))
        events.on(PeerCertificate, self.tls.name_peer)
        events.on(ConnectionClosed, lambda event: watch.connection_closed(event.connection))
        if sasl is not None:
            events.on(ConnectionClosed, lambda event: sasl.forget(event.connection))
        names = frozenset(listener.name for listener in self.listeners)
        dispatch = Dispatch({}, self._foundation.traced(served_apis(ListenerRole.CONTROLLER)), names)
        return Pipeline(self.data_plane, dispatch, contexts, events, limits_of(self.config))

    def _build_services(self, channel: SwitchingChannel) -> ControllerServices:
        controller = self.controller
        return ControllerServices(
            config=self.live.current,
            config_rules=self.live,
            cluster_id=self.cluster_id,
            image=lambda: controller.image,
            controller=channel,
            publisher=NoPartitions(),
            advertised=advertised(self.listeners),
            slices=Slices(),
            mutations=self.mutations,
            tokens=build_tokens(self.config, lambda: controller.image, SYSTEM_CLOCK.wall_ms),
            sasl=self.sasl,
            authorizer=build_authorizer(self.config),
            voter=controller,
            death_watch=self.death_watch,
        )

    def _build_registration(self, access: ControllerAccess) -> ControllerRegistration:
        """Return what makes this controller known to others: where its listeners are (KIP-919)."""
        listeners = {listener.name: listener.reachable for listener in self.listeners}
        reachable = Reachable(listeners, {one.name: one.protocol_number for one in self.listeners})
        return ControllerRegistration(self.config.node_id, access.channel.active, ControllerError, reachable)

    def _quorum_settings(self) -> QuorumSettings:
        config, metadata = self.config, self._foundation.directories.metadata
        addresses = tuple(VoterAddress(voter.node_id, voter.host, voter.port) for voter in config.quorum_voters)
        return QuorumSettings(
            metadata.path,
            self.cluster_id,
            config.node_id,
            voters=config.voter_ids,
            segment_bytes=config.metadata_log_segment_bytes,
            segment_ms=config.metadata_log_segment_ms,
            addresses=addresses,
            directory_id=id_bytes(metadata.meta.directory_id) if metadata.meta is not None else bytes(16),
            election_timeout_ms=config.controller_quorum_election_timeout_ms,
            election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
            fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
            request_timeout_ms=config.controller_quorum_request_timeout_ms,
            retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
            snapshots=build_snapshot_policy(config),
            death_grace_ms=config.controller_quorum_death_grace_ms,
            endpoints=tuple(VoterEndpoint(one.name, *one.reachable) for one in self.listeners),
            bootstrap_servers=config.quorum_bootstrap_servers,
            auto_join=config.controller_quorum_auto_join_enable,
            security=self._foundation.outbound.controllers,
        )


def build_cluster_settings(config: BrokerConfig, rules: ConfigRules) -> ClusterSettings:
    """Return what the cluster machine is configured with."""
    balances = config.auto_leader_rebalance_enable
    return ClusterSettings(
        config.num_partitions,
        config.default_replication_factor,
        config.broker_session_timeout_ms,
        rules,
        imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000 if balances else NEVER,
        imbalance_percentage=config.leader_imbalance_per_broker_percentage,
        unclean_election_interval_ms=config.unclean_leader_election_interval_ms,
        # Nobody follows the log of a node without a listener for controllers.
        no_op_interval_ms=config.metadata_max_idle_interval_ms if config.controller_listener_names else NEVER,
        tokens=TokenSettings(
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
            # Nobody makes tokens without the secret.
            NEVER if config.delegation_token_secret_key is None else config.delegation_token_expiry_check_interval_ms,
            config.delegation_token_max_per_owner,
        ),
    )
