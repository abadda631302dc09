"""Unsigned OAUTHBEARER tokens that a client creates from a login module's options `unsecuredLogin*`.

Owns those options and their rules. The claims of such a token are unverified. Listeners accept it only where their
settings name the class that does so (`pybroker/config/security/oauth.py`), for tests and isolated networks.

Source: Kafka's OAuthBearerUnsecuredLoginCallbackHandler.
"""

from __future__ import annotations

import json
import math
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

from pybroker.client.errors import SettingError
from pybroker.config.security.oauth import UNSECURED_LOGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRING, _NUMBER, _LIST = (f"{UNSECURED_LOGIN}{kind}Claim_" for kind in ("String", "Number", "List"))
_EXTENSION = f"{UNSECURED_LOGIN}Extension_"
_LIFETIME = f"{UNSECURED_LOGIN}LifetimeSeconds"
_PRINCIPAL = f"{UNSECURED_LOGIN}PrincipalClaimName"
_DEFAULT_LIFETIME = "3600"
_OF_TIME = ("iat", "exp")


def makes_own(options: Mapping[str, str]) -> bool:
    """Whether the options of a login module make the client create its tokens."""
    return any(name.startswith(UNSECURED_LOGIN) for name in options)


def build_claims(options: Mapping[str, str], now_s: float) -> dict[str, Any]:
    """Return the claims of a token created at `now_s`, in seconds of Unix time. Raises SettingError."""
    claims: dict[str, Any] = {}
    for name, text in options.items():
        if name.startswith(_STRING):
            claims[name.removeprefix(_STRING)] = text
        elif name.startswith(_NUMBER):
            claims[name.removeprefix(_NUMBER)] = _number(name, text)
        elif name.startswith(_LIST):
            # The first character is the separator of the items.
            claims[name.removeprefix(_LIST)] = text[1:].split(text[0]) if len(text) > 1 else []
    user = options.get(_PRINCIPAL) or "sub"
    if not isinstance(claims.get(user), str) or not claims[user].strip():
        raise SettingError(f"sasl.jaas.config: the login module needs {_STRING}{user}: the name of the client")
    for name in _OF_TIME:
        if name in claims:
            raise SettingError(f"sasl.jaas.config: the claim {name} is computed from {_LIFETIME}: remove it")
    lifetime_s = _number(_LIFETIME, options.get(_LIFETIME) or _DEFAULT_LIFETIME)
    if lifetime_s <= 0:
        raise SettingError(f"sasl.jaas.config: {_LIFETIME}={lifetime_s:g}: must be a number above 0")
    # A listener may reject a token that was issued later than its own clock.
    return {"iat": int(now_s), "exp": int(now_s) + lifetime_s, **claims}


def encode(claims: Mapping[str, Any]) -> str:
    """Return a token with these claims and no signature (RFC 7519, 6)."""
    parts = (json.dumps(part, separators=(",", ":")).encode() for part in ({"alg": "none"}, claims))
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def extensions_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the SASL extensions that are sent with the token (KIP-342)."""
    return {name.removeprefix(_EXTENSION): text for name, text in options.items() if name.startswith(_EXTENSION)}


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SettingError(f"sasl.jaas.config: {name}={text}: must be a number")
    return number
