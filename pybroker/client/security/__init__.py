"""Security of a client's connections: from settings to TLS sessions and SASL exchanges.

Owns the loading of stores and credentials, and the renewal of bearer tokens. TLS and SASL themselves are native
(`native/tls`, `native/secure/src/sasl`), shared by the native engine and asyncio. Must not know requests.

    tls       trust and key stores, from files or PEM texts
    sasl      credentials, from a login module or a user and a password
    bearer    OAUTHBEARER's tokens, and the thread that renews them
    kerberos  GSSAPI, by the system's library
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.client.security.bearer import BearerToken
from pybroker.client.security.sasl import open_credentials
from pybroker.client.security.tls import open_tls

if TYPE_CHECKING:
    from pybroker.client.settings.security import SecuritySettings

__all__ = ["BearerToken", "open_security"]


def open_security(settings: SecuritySettings) -> None:
    """Create the TLS and SASL objects of a client's connections, once; files are read here.

    Sets `tls` and `credentials`. Raises SettingError, and AuthenticationError where no token can be obtained.
    """
    if settings.is_encrypted and settings.tls is None:
        settings.__dict__["tls"] = open_tls(settings)
    if settings.signs_in and settings.credentials is None:
        settings.__dict__["credentials"] = open_credentials(settings)
