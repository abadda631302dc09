"""How a client's connections are secured: from settings to what sessions and exchanges are made of.

Owns the reading of stores and credentials, and the renewal of bearer tokens. The machines themselves are native
(`native/tls`, `native/secure/src/sasl`), one for the native engine and for asyncio. Must not know requests.

    tls       trust and key stores, of files or of texts
    sasl      credentials, of a login module or of a user and a password
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
    """Make what a client's connections are encrypted with and sign in with, once; files are read here.

    Sets `tls` and `credentials`. Raises SettingError, and AuthenticationError where no token can be had.
    """
    if settings.is_encrypted and settings.tls is None:
        settings.__dict__["tls"] = open_tls(settings)
    if settings.signs_in and settings.credentials is None:
        settings.__dict__["credentials"] = open_credentials(settings)
