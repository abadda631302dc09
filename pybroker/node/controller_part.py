"""The controller of a node: its voter of the metadata quorum, and the listeners of controllers.

Owns the building of the controller, and of its own data plane and pipeline for requests of other controllers and
brokers. They are served before this node's broker is ready, and independently of its clients. Must not know partitions
or clients. A single node has a controller without a listener.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.shut_down import Stage
from pybroker.controller.cluster.settings import NEVER, ClusterSettings, TokenSettings
from pybroker.controller.errors import ControllerError
from pybroker.controller.failure_detector import build_failure_detector
from pybroker.controller.local_channel import LocalChannel
from pybroker.controller.quorum.settings import QuorumSettings, VoterAddress
from pybroker.controller.quorum.voters.voter_set import VoterEndpoint
from pybroker.controller.registration import ControllerRegistration, Reachable
from pybroker.controller.service import Controller
from pybroker.controller.unclean_elections import UncleanElections
from pybroker.handlers.context import Contexts, ControllerContext, ControllerServices
from pybroker.handlers.registry import registered_apis
from pybroker.machine.slices import Slices
from pybroker.net.closing import close_connections, finish_requests
from pybroker.net.data_plane_settings import build_data_plane_settings
from pybroker.net.dispatch import Dispatch
from pybroker.net.events import EventTable, log_line
from pybroker.net.listeners import OpenListener, advertised, open_listeners
from pybroker.net.native import ConnectionClosed, DataPlane, LogDirectoryFailed, LogLine, PeerCertificate
from pybroker.net.pipeline import Pipeline
from pybroker.net.tls import TlsListeners
from pybroker.node.measuring import of_controller
from pybroker.node.snapshot_policy import build_snapshot_policy
from pybroker.protocol.listener_role import ListenerRole
from pybroker.replica.no_partitions import NoPartitions
from pybroker.serving import Users, build_authorizer, build_sasl_server, build_tokens, limits_of
from pybroker.storage.log_dirs.meta_properties import id_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pybroker.config.broker import BrokerConfig
    from pybroker.controller.cluster.settings import ConfigRules
    from pybroker.controller.failure_detector import FailureDetector
    from pybroker.controller.switching_channel import SwitchingChannel
    from pybroker.metadata.publishers import Publisher
    from pybroker.node.controller_access import ControllerAccess
    from pybroker.node.foundation import Foundation

_NETWORK_THREADS = 1
"""Requests to controllers are served in Python, so one network thread is enough."""


class ControllerListening(msgspec.Struct, frozen=True, eq=False):
    """The controller listeners with their data plane and certificates."""

    data_plane: DataPlane
    tls: TlsListeners
    listeners: tuple[OpenListener, ...]


def listen_for_nodes(foundation: Foundation) -> ControllerListening | None:
    """Open the controller listeners, or return None if there are none. Raises ListenError."""
    config, end = foundation.config, foundation.shut_down.add
    if not config.controller_endpoints:
        return None
    data_plane = DataPlane(build_data_plane_settings(config, foundation.shares, network_threads=_NETWORK_THREADS))
    end(Stage.CONTROLLER_REQUESTS, data_plane, data_plane.stop_accepting)
    end(Stage.CONTROLLER_CONNECTIONS, data_plane, lambda: close_connections(data_plane))
    settings = config.tls_of_listeners()
    tls = TlsListeners(
        {one.endpoint.name: settings[one.endpoint.name] for one in config.controller_endpoints if one.is_encrypted},
        foundation.principal_builder,
    )
    listeners = open_listeners(
        data_plane,
        config.controller_endpoints,
        backlog=config.socket_listen_backlog_size,
        unauthenticated_max_bytes=config.sasl_server_max_receive_size,
        tls=tls,
    )
    tls.start(data_plane)
    end(Stage.CONTROLLER_REQUESTS, tls, tls.stop)
    foundation.live.subscribe(lambda changed: tls.reconfigure(changed.tls_of_listeners()))
    foundation.metrics.add_data_plane(data_plane, tls, ListenerRole.CONTROLLER)
    return ControllerListening(data_plane, tls, listeners)


class ControllerPart(msgspec.Struct, frozen=True, eq=False):
    """The controller of one run of a node."""

    foundation: Foundation
    listening: ControllerListening | None
    """None without a controller listener."""
    controller: Controller
    failure_detector: FailureDetector
    local: LocalChannel

    async def start(self, publishers: Iterable[Publisher], access: ControllerAccess) -> None:
        """Open the metadata log, publish its images to `publishers`, serve other nodes, and take part in elections."""
        end, controller = self.foundation.shut_down.add, self.controller
        elections = UncleanElections(lambda: controller.is_leader)
        followers: list[Publisher] = [*publishers, elections, self.local.former_isr]
        if self.listening is not None:
            registration = self._build_registration(self.listening, access)
            end(Stage.REPORTS, registration, registration.stop)
            followers.append(registration)
        await controller.open(followers)
        self.foundation.metrics.add(partial(of_controller, controller, elections))
        end(Stage.METADATA_LOG, controller, controller.stop)
        end(Stage.METADATA_LOG, self.failure_detector, self.failure_detector.stop)
        if self.listening is not None:
            pipeline = self._build_pipeline(self.listening, access.channel)
            end(Stage.CONTROLLER_REQUESTS, pipeline, lambda: finish_requests(pipeline))
            end(Stage.CONTROLLER_CONNECTIONS, pipeline, pipeline.stop)
            pipeline.start()
        await controller.start()

    def _build_registration(self, listening: ControllerListening, access: ControllerAccess) -> ControllerRegistration:
        """Return the registration of this controller with its listeners (KIP-919)."""
        listeners = {listener.name: listener.reachable for listener in listening.listeners}
        reachable = Reachable(listeners, {one.name: one.protocol_number for one in listening.listeners})
        return ControllerRegistration(self.foundation.config.node_id, access.channel.active, ControllerError, reachable)

    def _build_pipeline(self, listening: ControllerListening, channel: SwitchingChannel) -> Pipeline:
        """Return the pipeline of the listeners, not started."""
        foundation, controller, detector = self.foundation, self.controller, self.failure_detector
        config, live, wall_ms = foundation.config, foundation.live, foundation.clock.wall_ms
        tokens = build_tokens(config, lambda: controller.image, wall_ms)
        users = Users(lambda: controller.scram, tokens, foundation.principal_builder)
        sasl = build_sasl_server(
            live, listening.data_plane, users, wall_ms, lambda changed: changed.controller_endpoints
        )
        services = ControllerServices(
            config=live.current,
            config_rules=live,
            cluster_id=foundation.cluster_id,
            image=lambda: controller.image,
            controller=channel,
            publisher=NoPartitions(),
            advertised=advertised(listening.listeners),
            slices=Slices(),
            mutations=foundation.mutations,
            tokens=tokens,
            sasl=sasl,
            authorizer=build_authorizer(config),
            voter=controller,
            failure_detector=detector,
        )
        contexts = Contexts(ControllerContext, services)
        live.subscribe(contexts.reconfigure)
        events = EventTable()
        events.on(LogLine, log_line)
        events.on(LogDirectoryFailed, lambda event: foundation.failures.lose_directory(event.directory, event.error))
        events.on(PeerCertificate, listening.tls.name_peer)
        events.on(ConnectionClosed, lambda event: detector.connection_closed(event.connection))
        if sasl is not None:
            foundation.shut_down.add(Stage.WORKERS, sasl, sasl.close)
            forget = sasl.forget
            events.on(ConnectionClosed, lambda event: forget(event.connection))
        names = frozenset(listener.name for listener in listening.listeners)
        dispatch = Dispatch({}, foundation.traced(registered_apis(ListenerRole.CONTROLLER)), names)
        return Pipeline(listening.data_plane, dispatch, contexts, events, limits_of(config))


def build_controller(foundation: Foundation, listening: ControllerListening | None) -> ControllerPart:
    """Return the controller of a node. Its metadata log is not open yet."""
    config, failures = foundation.config, foundation.failures
    controller = Controller(
        build_cluster_settings(config, foundation.live),
        _quorum_settings(foundation, listening),
        lambda error: failures.end(f"the metadata log failed: {error}"),
    )
    failure_detector = build_failure_detector(controller, config.inter_broker_listener, config.broker_death_grace_ms)
    local = LocalChannel(controller, failure_detector.is_removed)
    return ControllerPart(foundation, listening, controller, failure_detector, local)


def _quorum_settings(foundation: Foundation, listening: ControllerListening | None) -> QuorumSettings:
    config, metadata = foundation.config, foundation.directories.metadata
    listeners = () if listening is None else listening.listeners
    addresses = tuple(VoterAddress(voter.node_id, voter.host, voter.port) for voter in config.quorum_voters)
    return QuorumSettings(
        metadata.path,
        foundation.cluster_id,
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
        endpoints=tuple(VoterEndpoint(one.name, *one.reachable) for one in listeners),
        bootstrap_servers=config.quorum_bootstrap_servers,
        auto_join=config.controller_quorum_auto_join_enable,
        security=foundation.outbound.controllers,
    )


def build_cluster_settings(config: BrokerConfig, rules: ConfigRules) -> ClusterSettings:
    """Return the settings of the cluster machine."""
    balances = config.auto_leader_rebalance_enable
    return ClusterSettings(
        config.num_partitions,
        config.default_replication_factor,
        config.broker_session_timeout_ms,
        rules,
        imbalance_check_interval_ms=config.leader_imbalance_check_interval_seconds * 1000 if balances else NEVER,
        imbalance_percentage=config.leader_imbalance_per_broker_percentage,
        unclean_election_interval_ms=config.unclean_leader_election_interval_ms,
        # Without a controller listener, no other node fetches the metadata log.
        no_op_interval_ms=config.metadata_max_idle_interval_ms if config.controller_listener_names else NEVER,
        tokens=TokenSettings(
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
            # Without the secret, there are no tokens.
            NEVER if config.delegation_token_secret_key is None else config.delegation_token_expiry_check_interval_ms,
            config.delegation_token_max_per_owner,
        ),
    )
