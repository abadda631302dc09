"""The client side of GSSAPI (RFC 4752, Kerberos only): authenticates with a ticket for the broker.

Owns the login module options for the source of tickets, the messages around the security context, and the client's
use of the package `gssapi` (`pybroker.security.kerberos_library`). The system's library fetches and renews tickets.
Must not know frames: native exchanges call this (`native.SaslCredentials.gssapi`), on the threads that authenticate
connections.
"""

from __future__ import annotations

import uuid
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from pybroker.client import native
from pybroker.client.errors import AuthenticationError, SettingError
from pybroker.config.extras import install_command
from pybroker.security.kerberos_library import LibraryContext, in_one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.client.settings.security import SecuritySettings

MODULE = "com.sun.security.auth.module.Krb5LoginModule"
_NO_LAYER = 1
"""The bit of RFC 4752 for no security layer: later bytes are sent unprotected."""
_OFFER_BYTES = 4


class Context(Protocol):
    """The initiating side of one security context. Calls raise AuthenticationError."""

    def initiate(self, token: bytes | None) -> bytes:
        """Process the broker's token, None at first. Returns the token for the broker, which may be empty."""

    @property
    def stands(self) -> bool:
        """Whether the context is established."""

    @property
    def principal(self) -> str:
        """Return the principal of the client."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message for the broker."""

    def unwrap(self, token: bytes) -> bytes:
        """Verify a message of the broker, and return its content."""


class Initiation:
    """One exchange: tokens of the context, then the choice of no security layer."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_chosen = False

    def step(self, token: bytes) -> bytes | None:
        """Process a token of the broker. Returns the next one for it, None at the end. Raises AuthenticationError."""
        if self._has_chosen:
            if token:
                raise AuthenticationError("the broker sent another token after the GSSAPI exchange had ended")
            return None
        if not self._context.stands:
            return self._context.initiate(token)
        offer = self._context.unwrap(token)
        if len(offer) != _OFFER_BYTES or not offer[0] & _NO_LAYER:
            raise AuthenticationError("the broker requires a GSSAPI security layer; Kafka's protocol supports none")
        self._has_chosen = True
        return self._context.wrap(bytes((_NO_LAYER, 0, 0, 0)) + self._context.principal.encode())


def open_kerberos(settings: SecuritySettings, options: Mapping[str, str]) -> native.SaslCredentials:
    """Create credentials that use tickets; `options` are those of the login module. Raises SettingError."""
    if find_spec("gssapi") is None:
        raise SettingError(
            f"sasl.mechanism=GSSAPI{settings.by_default}: the Kerberos package is missing: {install_command('gssapi')}"
        )
    service = _service(settings, options)
    name, store = options.get("principal"), build_store(options)
    return native.SaslCredentials.gssapi(build_begin(lambda host: InitiatedContext(service, host, name, store)))


def build_begin(
    open_context: Callable[[str], Context],
) -> Callable[[str], tuple[Callable[[bytes], bytes | None], bytes]]:
    """Return the function that starts an exchange with a host, as native exchanges call it."""

    def begin(host: str) -> tuple[Callable[[bytes], bytes | None], bytes]:
        context = open_context(host)
        return Initiation(context).step, context.initiate(None)

    return begin


def _service(settings: SecuritySettings, options: Mapping[str, str]) -> str:
    of_setting, of_module = settings.sasl_kerberos_service_name, options.get("serviceName")
    if of_setting and of_module and of_setting != of_module:
        raise SettingError(
            f"sasl.kerberos.service.name={of_setting}: the login module's serviceName is {of_module}; set only one"
        )
    service = of_setting or of_module
    if not service:
        raise SettingError(
            f"sasl.mechanism=GSSAPI{settings.by_default} needs sasl.kerberos.service.name: the first part of the "
            "brokers' principal, kafka"
        )
    return service


def build_store(options: Mapping[str, str]) -> dict[str, str] | None:
    """Return the location of tickets and keys, in the terms of the system's library; None: the library's defaults.

    Tickets for a key table's keys are kept in memory, apart from those of other clients. Raises SettingError.
    """

    def reports(option: str) -> bool:
        return options.get(option, "").lower() == "true"

    if reports("useKeyTab"):
        keys = options.get("keyTab", "").removeprefix("file:")
        store = {"ccache": f"MEMORY:pybroker-{uuid.uuid4().hex}"}
        return store | ({"client_keytab": keys} if keys else {})
    if options and not reports("useTicketCache"):
        raise SettingError(f"sasl.jaas.config: {MODULE} needs useKeyTab=true or useTicketCache=true (no prompt)")
    cache = options.get("ticketCache")
    return {"ccache": cache} if cache else None


class InitiatedContext(LibraryContext):
    """A context of the system's library."""

    def __init__(self, service: str, host: str, principal: str | None, store: dict[str, str] | None) -> None:
        """Raises AuthenticationError where there are neither tickets nor keys."""
        super().__init__(AuthenticationError)
        gssapi = self._gssapi
        kinds = gssapi.NameType
        try:
            name = None if principal is None else gssapi.Name(principal, kinds.kerberos_principal)
            kerberos = gssapi.MechType.kerberos
            credentials = gssapi.Credentials(name=name, usage="initiate", mechs=[kerberos], store=store)
            flags = [gssapi.RequirementFlag.mutual_authentication, gssapi.RequirementFlag.integrity]
            target = gssapi.Name(f"{service}@{host}", kinds.hostbased_service)
            self._context = gssapi.SecurityContext(
                name=target, creds=credentials, usage="initiate", mech=kerberos, flags=flags
            )
        except gssapi.exceptions.GSSError as error:
            raise AuthenticationError(in_one_line(error)) from None

    def initiate(self, token: bytes | None) -> bytes:
        """As `Context.initiate`."""
        response: bytes | None = self._called(lambda: self._context.step(token))
        # A failure with a token for the broker is raised by the next check of the context.
        self._called(lambda: self._context.complete)
        return response or b""

    @property
    def principal(self) -> str:
        """As `Context.principal`."""
        return str(self._called(lambda: self._context.initiator_name))
