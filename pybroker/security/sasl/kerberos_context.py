"""Security contexts of the system's Kerberos, by the package `gssapi` (the extra `pybroker[gssapi]`).

Owns the broker's use of that package, and what its errors are called here. Must not know SASL's messages. Everything
here may read files (key table, replay cache, krb5.conf), so it is called by threads alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pybroker.security.sasl.kerberos import ContextError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.config.kerberos import KerberosSettings


class AcceptedContext:
    """One client's context, for the broker's keys. Keys are read for each: a changed key table holds from then on."""

    def __init__(self, settings: KerberosSettings) -> None:
        """Raises ContextError where the keys, or the library, cannot be had."""
        try:
            import gssapi  # of the extra `gssapi`, which not every broker has
        except (ImportError, OSError) as error:
            raise ContextError(f"the package gssapi cannot be used: {_described(error)}") from None
        self._gssapi: Any = gssapi
        store = None if settings.key_table is None else {"keytab": settings.key_table}
        try:
            name = gssapi.Name(settings.principal, gssapi.NameType.kerberos_principal)
            # Without the mechanism's name a client could negotiate another one (SPNEGO).
            kerberos = [gssapi.MechType.kerberos]
            credentials = gssapi.Credentials(name=name, usage="accept", mechs=kerberos, store=store)
            self._realm = str(credentials.name).rpartition("@")[2]
            self._context: Any = gssapi.SecurityContext(creds=credentials, usage="accept")
        except gssapi.exceptions.GSSError as error:
            raise ContextError(f"the broker's own keys of {settings.principal}: {_described(error)}") from None

    def accept(self, token: bytes) -> bytes:
        """As `Context.accept`."""
        answer: bytes | None = self._called(lambda: self._context.step(token))
        # A failure that has a token for the client is raised by the next look at the context.
        if self.stands and self._context.mech != self._gssapi.MechType.kerberos:
            raise ContextError("the context is none of Kerberos")
        return answer or b""

    @property
    def stands(self) -> bool:
        """As `Context.stands`."""
        return bool(self._called(lambda: self._context.complete))

    @property
    def initiator(self) -> str:
        """As `Context.initiator`."""
        return str(self._called(lambda: self._context.initiator_name))

    @property
    def realm(self) -> str:
        """As `Context.realm`."""
        return self._realm

    def wrap(self, message: bytes) -> bytes:
        """As `Context.wrap`."""
        wrapped: bytes = self._called(lambda: self._context.wrap(message, False)).message
        return wrapped

    def unwrap(self, token: bytes) -> bytes:
        """As `Context.unwrap`."""
        message: bytes = self._called(lambda: self._context.unwrap(token)).message
        return message

    def _called(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except self._gssapi.exceptions.GSSError as error:
            raise ContextError(_described(error)) from None


def _described(error: Exception) -> str:
    """What the library says, in one line."""
    return " ".join(str(error).split())
