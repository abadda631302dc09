"""Parts that serve requests, built from a node's settings: security, telemetry, limits, unresolved requests.

Must not decide in which order parts are built: `pybroker.node` owns that order.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec

from pybroker.broker.transaction_verification import Producer, VerificationMode
from pybroker.config.errors import ConfigError
from pybroker.coordinator.transaction.events import ProducerIdentity
from pybroker.net.pipeline import Limits
from pybroker.net.rights import Authorization
from pybroker.net.unresolved import UnresolvedRequests
from pybroker.security import authorizer, principal_builder
from pybroker.security.delegation_tokens import DelegationTokens
from pybroker.security.sasl.server import SaslServer
from pybroker.telemetry.receivers import Receivers, build_receivers
from pybroker.telemetry.service import Telemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from pybroker.broker.live_config import LiveConfig
    from pybroker.broker.transaction_verification import TransactionVerification
    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Listener
    from pybroker.config.security.sasl import ListenerSasl
    from pybroker.coordinator.transaction.service import TransactionCoordinator
    from pybroker.machine.reply import Reply
    from pybroker.metadata.image import MetadataImage, ScramImage
    from pybroker.net.native import DataPlane, UnresolvedRequest
    from pybroker.net.verification import Requested, VerificationResults
    from pybroker.security.authorizer import AuthorizationRules
    from pybroker.security.delegation_tokens import DelegationTokens
    from pybroker.security.principal_builder import Proof
    from pybroker.security.principals import Principal
    from pybroker.security.sasl.server import SaslServer


_NONCE_BYTES = 18
"""Random bytes in the server nonce of a SCRAM exchange."""


def build_authorizer(config: BrokerConfig) -> AuthorizationRules | None:
    """Return the authorizer, or None where every operation is allowed.

    Raises ConfigError for a class that cannot be loaded.
    """
    name = config.authorizer_class_name
    try:
        return authorizer.build(name, config.super_users, config.given, if_none=config.allow_everyone_if_no_acl_found)
    except Exception as error:
        words = f"a class that can be loaded and called with the node's properties: {error!r}"
        raise ConfigError("authorizer.class.name", name, words) from error


def build_principal_builder(config: BrokerConfig) -> Callable[[Proof], Principal] | None:
    """Return the principal builder, or None for Kafka's default.

    Raises ConfigError for a class that cannot be loaded.
    """
    name = config.principal_builder_class
    try:
        return principal_builder.load(name, config.given)
    except Exception as error:
        words = f"a class that can be loaded and called with the node's properties: {error!r}"
        raise ConfigError("principal.builder.class", name, words) from error


def build_telemetry(config: BrokerConfig, now_ms: Callable[[], int]) -> Telemetry | None:
    """Return the service for client telemetry, or None without receivers.

    Raises ConfigError for a receiver that cannot be loaded.
    """
    receivers, last_values = build_receivers(config.telemetry_receivers, config.given, now_ms)
    if not receivers:
        return None
    return Telemetry(Receivers(receivers), last_values, max_bytes=config.telemetry_max_bytes, now_ms=now_ms)


def build_tokens(
    config: BrokerConfig, image: Callable[[], MetadataImage], wall_ms: Callable[[], int]
) -> DelegationTokens | None:
    """Return the delegation token service, or None for a node without `delegation.token.secret.key`."""
    secret = config.delegation_token_secret_key
    if secret is None:
        return None
    return DelegationTokens(secret, lambda: image().delegation_tokens, wall_ms)


class Users(msgspec.Struct, frozen=True):
    """The SCRAM credentials and delegation tokens in the metadata."""

    scram: Callable[[], ScramImage]
    tokens: DelegationTokens | None
    builder: Callable[[Proof], Principal] | None
    """The principal builder; None for Kafka's default: `User:` and the authenticated name."""


def build_sasl_server(
    live: LiveConfig,
    data_plane: DataPlane,
    users: Users,
    wall_ms: Callable[[], int],
    listeners_of: Callable[[BrokerConfig], Iterable[Listener]],
) -> SaslServer | None:
    """Return the SASL server of these listeners, or None if none of them uses SASL."""

    def offered(config: BrokerConfig) -> dict[str, ListenerSasl]:
        names = {one.endpoint.name for one in listeners_of(config)}
        return {name: one for name, one in config.sasl_of_listeners().items() if name in names}

    found = offered(live.current)
    if not found:
        return None
    sasl = SaslServer(
        found,
        scram=users.scram,
        tokens=users.tokens,
        builder=users.builder,
        prove=data_plane.authenticate,
        nonce=lambda: secrets.token_urlsafe(_NONCE_BYTES),
        wall_ms=wall_ms,
    )
    live.subscribe(lambda config: sasl.reconfigure(offered(config)))
    return sasl


def limits_of(config: BrokerConfig) -> Limits:
    """Return the limits of a pipeline: requests in flight, and elements in one request."""
    return Limits(config.queued_max_requests, config.socket_request_max_elements)


def build_unresolved(
    data_plane: DataPlane,
    decide: Callable[[UnresolvedRequest], Awaitable[Authorization]],
    transactions: TransactionCoordinator,
    verification: TransactionVerification,
) -> UnresolvedRequests:
    """Return the handler of requests that the data plane cannot serve by itself.

    Produce requests that need transaction verification are sent to the transaction coordinator; `decide` authorizes the
    others.
    """

    async def query_coordinator(requested: Requested) -> VerificationResults:
        transactional_id, producer_id, producer_epoch, version, partitions = requested
        producer = Producer(transactional_id, producer_id, producer_epoch)
        return await verification.of_produce(producer, version, partitions)

    def query_here(requested: Requested) -> Reply | None:
        transactional_id, producer_id, producer_epoch, version, partitions = requested
        identity, adds = (
            ProducerIdentity(producer_id, producer_epoch),
            VerificationMode.of_produce(version) is VerificationMode.ADD,
        )
        return transactions.verify(transactional_id, identity, partitions, adds=adds)

    return UnresolvedRequests(data_plane, decide, query_here, query_coordinator)
