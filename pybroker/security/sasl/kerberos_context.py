"""The accepting side of Kerberos: the broker's use of the system's library (`pybroker.security.kerberos_library`).

Owns the choice of keys, and the rejection of any mechanism but Kerberos. Must not know SASL's messages. Every call may
read files (key table, replay cache, krb5.conf), so calls must run outside of the event loop, on a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.security.kerberos_library import LibraryContext, in_one_line
from pybroker.security.sasl.kerberos import ContextError

if TYPE_CHECKING:
    from pybroker.config.security.kerberos import KerberosSettings


class AcceptedContext(LibraryContext):
    """The security context of one client, with the broker's keys.

    Each context reads the key table again, so a changed key table applies to the next client.
    """

    def __init__(self, settings: KerberosSettings) -> None:
        """Raises ContextError if the keys or the library are not available."""
        super().__init__(ContextError)
        gssapi = self._gssapi
        store = None if settings.key_table is None else {"keytab": settings.key_table}
        try:
            name = gssapi.Name(settings.principal, gssapi.NameType.kerberos_principal)
            # Without the name of the mechanism, a client could negotiate another mechanism (SPNEGO).
            kerberos = [gssapi.MechType.kerberos]
            credentials = gssapi.Credentials(name=name, usage="accept", mechs=kerberos, store=store)
            self._realm = str(credentials.name).rpartition("@")[2]
            self._context = gssapi.SecurityContext(creds=credentials, usage="accept")
        except gssapi.exceptions.GSSError as error:
            raise ContextError(f"keys of the broker's principal {settings.principal}: {in_one_line(error)}") from None

    def accept(self, token: bytes) -> bytes:
        """As `Context.accept`."""
        response: bytes | None = self._called(lambda: self._context.step(token))
        # A failure with a token for the client is raised by the next check of the context.
        if self.stands and self._context.mech != self._gssapi.MechType.kerberos:
            raise ContextError("the security context is not Kerberos")
        return response or b""

    @property
    def initiator(self) -> str:
        """As `Context.initiator`."""
        return str(self._called(lambda: self._context.initiator_name))

    @property
    def realm(self) -> str:
        """As `Context.realm`."""
        return self._realm
