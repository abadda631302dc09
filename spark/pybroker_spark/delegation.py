"""Delegation tokens for tasks (KIP-48): credentials stay in the driver's program, and tasks authenticate by a token.

Owns one token of one cluster. It is created, and known to every broker, before a task needs it, renewed by a thread
of the driver's program, and expired at the end. Source, sink and load get it as client settings and must not know
where it comes from. No message, log line or `repr` contains its secret or the credentials.

A Python data source has no process that lives as long as its query (`docs/adr/0091`). The program that starts the
query has, so that program owns the token.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

from pybroker.client import Admin, ClientError
from pybroker.client.errors import AuthenticationError, UnreachableError
from pybroker.client.settings import AdminSettings

if TYPE_CHECKING:
    from pybroker.client.administration.token_admin import Token
    from pybroker_spark.load.plan import LoadPlan

_log = logging.getLogger(__name__)

MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
_PROTOCOLS: Final = ("SASL_SSL", "SASL_PLAINTEXT")
_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_OWN: Final = ("sasl.", "ssl.keystore.", "ssl.key.", "ssl.certificate.")
"""Prefixes of settings that contain the driver's credentials, or define their source."""
_SECURITY: Final = ("security.", "sasl.", "ssl.")
_SERVERS: Final = "bootstrap.servers"
_RENEWED_AT: Final = 0.75
"""The share of a token's lifetime after which it is renewed, as in Spark (spark.security.credentials.*)."""
_KNOWN_S: Final = 10.0
"""Timeout in seconds until all brokers know a new token."""
_POLL_INTERVAL_S: Final = 0.05
_QUERY_MS: Final = 5_000
_LONGEST_REST_S, _SHORTEST_REST_S = 60.0, 1.0
_LEAVE_S: Final = 10.0
LONGEST: Final = -1
"""The longest lifetime that brokers allow: their delegation.token.max.lifetime.ms."""


class DelegationError(Exception):
    """There is no token for tasks. The message has the reason and the fix."""


class Delegation:
    """Owns a token in the driver's program while it is open (`with`); tasks get its `options` or `properties`."""

    def __init__(
        self,
        bootstrap_servers: str,
        properties: Mapping[str, Any],
        *,
        mechanism: str = MECHANISMS[0],
        max_lifetime_ms: int = LONGEST,
    ) -> None:
        """As `pybroker_spark.delegated`. Raises DelegationError."""
        protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
        if protocol not in _PROTOCOLS:
            raise DelegationError(
                f"security.protocol={protocol}: tasks sign in by SASL with a delegation token: must be one of "
                f"{', '.join(_PROTOCOLS)}"
            )
        if mechanism not in MECHANISMS:
            raise DelegationError(f"mechanism {mechanism}: tokens are shown by {' or '.join(MECHANISMS)}")
        self.bootstrap_servers = bootstrap_servers
        self._given = {key: value for key, value in properties.items() if key != _SERVERS}
        self._mechanism, self._max_lifetime_ms = mechanism, max_lifetime_ms
        self._token: Token | None = None
        self._renewal: _Renewal | None = None

    def __repr__(self) -> str:
        return f"Delegation({self.bootstrap_servers!r}, {self._token!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Delegation has the driver's credentials and is not sent to tasks: pass its options to them")

    def __enter__(self) -> Self:
        """Create the token, and wait until all brokers know it. Raises DelegationError."""
        begun_s = time.time()
        try:
            with self._admin() as admin:
                self._token = admin.create_token(max_lifetime_ms=self._max_lifetime_ms)
                self._wait_until_known(admin)
        except ClientError as error:
            self._end()
            raise DelegationError(f"{self.bootstrap_servers}: no delegation token for tasks: {error}") from error
        except BaseException:
            self._end()
            raise
        self._renewal = _Renewal(self._admin, self._token, begun_s)
        self._renewal.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Expire the token. After a failure the log has the time until which it is valid."""
        if self._renewal is not None:
            self._renewal.stop()
        self._end()

    @property
    def token_id(self) -> str:
        """Return the token id, which is no secret; empty while there is no token."""
        return "" if self._token is None else self._token.token_id

    @property
    def properties(self) -> dict[str, Any]:
        """Return the given properties, with the token instead of the credentials. Raises DelegationError."""
        return self.properties_of(self._given)

    @property
    def options(self) -> dict[str, str]:
        """Return them as options of the format `pybroker`: `kafka.*`, including the servers. Raises DelegationError."""
        given = {f"kafka.{key}": str(value) for key, value in self.properties.items()}
        return {f"kafka.{_SERVERS}": self.bootstrap_servers, **given}

    def properties_of(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return a client's properties with the token instead of credentials. Raises DelegationError."""
        if self._token is None:
            raise DelegationError("the delegation token is not made yet, or has ended: use it inside of `with`")
        kept = {key: value for key, value in properties.items() if not key.startswith(_OWN)}
        words = f'username="{self._token.token_id}" password="{self._token.password}" tokenauth="true"'
        return {**kept, "sasl.mechanism": self._mechanism, "sasl.jaas.config": f"{_MODULE} required {words};"}

    def _admin(self) -> Admin:
        return Admin(self.bootstrap_servers, AdminSettings.acting(self._given))

    def _wait_until_known(self, admin: Admin) -> None:
        """Authenticate by the token at every broker: a broker learns of a token shortly after the controller creates
        it.
        """
        deadline = time.monotonic() + _KNOWN_S
        by_token = AdminSettings.acting(self.properties)
        querying = {**by_token, "default.api.timeout.ms": str(_QUERY_MS), "request.timeout.ms": str(_QUERY_MS)}
        for broker in admin.describe_cluster().brokers:
            while True:
                try:
                    with Admin(f"{broker.host}:{broker.port}", querying) as requested:
                        requested.describe_cluster()
                    break
                except UnreachableError:
                    break  # The broker is down. It gets the token before it serves clients again.
                except AuthenticationError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_POLL_INTERVAL_S)

    def _end(self) -> None:
        token, self._token = self._token, None
        if token is None:
            return
        try:
            with self._admin() as admin:
                admin.expire_token(token.hmac)
        except ClientError as error:
            _log.warning("delegation token %s is not ended, and ends by itself: %s", token.token_id, error)


@contextmanager
def delegated_plan(plan: LoadPlan) -> Iterator[LoadPlan]:
    """Yield a load plan whose clients authenticate by tokens, one for each cluster and user, which expire at the end.

    Raises DelegationError.
    """
    with ExitStack() as stack:
        made: dict[object, Delegation] = {}
        clients = []
        for client in plan.clients:
            login = sorted((key, str(value)) for key, value in client.properties.items() if key.startswith(_SECURITY))
            key = (client.bootstrap_servers, tuple(login))
            if key not in made:
                made[key] = stack.enter_context(Delegation(client.bootstrap_servers, client.properties))
            clients.append(dataclasses.replace(client, properties=made[key].properties_of(client.properties)))
        yield dataclasses.replace(plan, clients=tuple(clients))


class _Renewal:
    """Renews an open token until its maximum lifetime."""

    def __init__(self, admin: Any, token: Token, begun_s: float) -> None:
        self._admin, self._token = admin, token
        self._ahead_s = begun_s - token.issued_ms / 1000
        """The offset of this machine's clock from the brokers'."""
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._run, name="delegation-token", daemon=True)

    def stop(self) -> None:
        """Stop renewing."""
        self._stopped.set()
        self.thread.join(_LEAVE_S)

    def _run(self) -> None:
        expires_ms = self._token.expires_ms
        pause = self._left_s(expires_ms) * _RENEWED_AT
        while expires_ms < self._token.ends_ms and not self._stopped.wait(max(pause, 0.0)):
            try:
                with self._admin() as admin:
                    expires_ms = admin.renew_token(self._token.hmac)
            except ClientError as error:
                if self._stopped.is_set():
                    return
                left = self._left_s(expires_ms)
                pause = min(max(left / 4, _SHORTEST_REST_S), _LONGEST_REST_S)
                _log.warning("delegation token %s: not renewed, %.0f s are left: %s", self._token.token_id, left, error)
                continue
            pause = self._left_s(expires_ms) * _RENEWED_AT
        if not self._stopped.is_set():
            ends = datetime.fromtimestamp(self._token.ends_ms / 1000, UTC).isoformat(timespec="seconds")
            _log.warning(
                "delegation token %s ends for good at %s: a query that goes on beyond has to be started again",
                self._token.token_id,
                ends,
            )

    def _left_s(self, expires_ms: int) -> float:
        return expires_ms / 1000 + self._ahead_s - time.time()
