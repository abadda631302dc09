"""The last steps of a broker's start: from its APIs to a started pipeline.

Owns the order of these steps. Must not build the parts that serve requests.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pybroker.broker.shut_down import Stage
from pybroker.handlers.api_versions import encoded_responses
from pybroker.handlers.context import BrokerContext, BrokerServices, Contexts
from pybroker.handlers.encoded_topics import EncodedTopics
from pybroker.handlers.own_requests import OwnRequests
from pybroker.handlers.registry import registered_apis
from pybroker.handlers.telemetry_client import TELEMETRY_KEYS
from pybroker.machine.slices import Slices
from pybroker.net import descriptors
from pybroker.net.closing import finish_requests
from pybroker.net.dispatch import Dispatch
from pybroker.net.forwarding import Forwarding
from pybroker.net.listeners import advertised
from pybroker.net.native import ConnectionClosed, InterceptedRequest, UnresolvedRequest
from pybroker.net.pipeline import Pipeline
from pybroker.node.measuring import of_requests_here
from pybroker.node.replicas import build_maintenance
from pybroker.protocol.listener_role import ListenerRole
from pybroker.replica.missing_records import find_missing_records
from pybroker.serving import Users, build_sasl_server, build_tokens, build_unresolved, limits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.handlers.context import RequestContext
    from pybroker.net.dispatch import Api
    from pybroker.net.native import ControlRequest
    from pybroker.net.rights import Authorization
    from pybroker.node.broker_part import BrokerPart
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.sasl.server import SaslServer
    from pybroker.storage.maintenance import Maintenance


async def serve(broker: BrokerPart, intercepted: Callable[[ControlRequest, RequestContext], None]) -> None:
    """Serve requests after all partitions of this broker are open, and start the background tasks of the logs.

    `intercepted` receives the requests of the APIs set by `data_plane.intercept`, and decides about them.
    """
    source, publisher, partitions = broker.access.source, broker.replicas.publisher, broker.replicas.partitions
    apis = _build_apis(broker)
    broker.listening.quotas.begin(frozenset(key for key, api in registered_apis().items() if api.is_of_brokers))
    # The image then contains this broker's registration, and all records committed before it.
    await publisher.published(max(source.image.offset, broker.membership.registration.epoch))
    unserved = TELEMETRY_KEYS if broker.plugins.telemetry is None else ()
    broker.api_versions.begin(lambda image: encoded_responses(image, unserved), source.image)
    partitions.set_aside_strays()
    maintenance = build_maintenance(broker.foundation, broker.listening, broker.replicas)
    await maintenance.resume_moves()
    pipeline = _build_pipeline(broker, apis, maintenance, intercepted)
    pipeline.start()
    descriptors.report(broker.foundation.shares, broker.foundation.config, len(partitions.all()))
    await maintenance.begin()
    broker.replicas.lag_checks.begin()
    heartbeats = broker.membership.heartbeats
    if heartbeats is not None:
        missing = find_missing_records(partitions.all(), publisher.image_in_force)
        await broker.membership.registration.report_lost(missing)
        heartbeats.opened()
        await heartbeats.unfenced()


def _build_pipeline(
    broker: BrokerPart,
    apis: Mapping[int, Api],
    maintenance: Maintenance,
    intercepted: Callable[[ControlRequest, RequestContext], None],
) -> Pipeline:
    foundation, listening, coordinators = broker.foundation, broker.listening, broker.coordinators
    source, publisher = broker.access.source, broker.replicas.publisher
    data_plane, events = listening.data_plane, listening.events
    config, live, end, wall_ms = foundation.config, foundation.live, foundation.shut_down.add, foundation.clock.wall_ms
    tokens = build_tokens(config, lambda: source.image, wall_ms)
    users = Users(lambda: source.image.scram, tokens, foundation.principal_builder)
    sasl = build_sasl_server(live, data_plane, users, wall_ms, lambda changed: changed.broker_endpoints)
    if sasl is not None:
        end(Stage.WORKERS, sasl, sasl.close)
        forget = sasl.forget
        events.on(ConnectionClosed, lambda event: forget(event.connection))
    contexts = Contexts(BrokerContext, _build_services(broker, maintenance, tokens, sasl), listening.quotas.time_of)
    live.subscribe(contexts.reconfigure)
    coordinators.brokers.serve_here(OwnRequests(apis, contexts).respond)
    dispatch = Dispatch(foundation.traced(apis))
    # All log directories may have failed while the partitions were opened.
    foundation.failures.check()

    async def decide(request: UnresolvedRequest) -> Authorization:
        # After the image is published, its topics are in the data plane's table. Other topics are unknown.
        await publisher.published(source.image.offset)
        return listening.rights.decision(request, source.image)

    unresolved = build_unresolved(data_plane, decide, coordinators.transactions, coordinators.verification)
    end(Stage.EVENTS, unresolved, unresolved.stop)
    events.on(UnresolvedRequest, unresolved.handle)
    events.on(InterceptedRequest, lambda event: intercepted(event.request, contexts.build(event.request)))
    pipeline = Pipeline(data_plane, dispatch, contexts, events, limits_of(config))
    end(Stage.REQUESTS, pipeline, lambda: finish_requests(pipeline))
    end(Stage.EVENTS, pipeline, pipeline.stop)
    foundation.metrics.add(partial(of_requests_here, pipeline.counts))
    return pipeline


def _build_services(
    broker: BrokerPart, maintenance: Maintenance, tokens: DelegationTokens | None, sasl: SaslServer | None
) -> BrokerServices:
    foundation, replicas, coordinators = broker.foundation, broker.replicas, broker.coordinators
    source = broker.access.source
    return BrokerServices(
        config=foundation.live.current,
        config_rules=foundation.live,
        cluster_id=foundation.cluster_id,
        image=lambda: source.image,
        controller=broker.access.channel,
        publisher=replicas.publisher,
        advertised=advertised(broker.listening.listeners.all),
        slices=Slices(),
        mutations=foundation.mutations,
        tokens=tokens,
        sasl=sasl,
        authorizer=broker.plugins.authorizer,
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        partitions=replicas.partitions,
        moves=maintenance.moves,
        producer_ids=coordinators.producer_ids,
        retention=maintenance.retention,
        deletions=replicas.deletions,
        topics=EncodedTopics(),
        markers=coordinators.markers,
        verification=coordinators.verification,
        failed_brokers=broker.failed_brokers,
        telemetry=broker.plugins.telemetry,
    )


def _build_apis(broker: BrokerPart) -> Mapping[int, Api]:
    """Return the APIs of the broker listeners. Requests for the active controller are forwarded to it."""
    apis: Mapping[int, Api] = registered_apis(ListenerRole.BROKER)
    if broker.plugins.telemetry is None:
        apis = {key: api for key, api in apis.items() if key not in TELEMETRY_KEYS}
    channels, source = broker.access.channels, broker.access.source
    if channels is None:
        return apis
    forwarding = Forwarding(
        channels.clients,
        lambda: source.is_leader,
        broker.replicas.publisher.published,
        max_request_bytes=broker.foundation.config.socket_request_max_bytes,
    )
    broker.foundation.shut_down.add(Stage.DELAYED_REQUESTS, forwarding, forwarding.close)
    return forwarding.apply(apis)
