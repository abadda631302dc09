"""How a client's connections are secured: from settings to what sessions and exchanges are made of.

Owns the reading of stores and credentials, and the renewal of bearer tokens. The machines themselves are native
(`native/tls`, `native/client/src/sasl`), one for the native engine and for asyncio. Must not know requests.

    tls       trust and key stores, of files or of texts
    sasl      credentials, of a login module or of a user and a password
    bearer    OAUTHBEARER's tokens, and the thread that renews them
"""

from __future__ import annotations

from pybroker.client.security.bearer import BearerToken
from pybroker.client.security.sasl import open_credentials
from pybroker.client.security.tls import open_tls

__all__ = ["BearerToken", "open_credentials", "open_tls"]
