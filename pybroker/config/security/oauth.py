"""A listener's validation of OAUTHBEARER tokens: the signing keys, and the required claims.

Unsigned tokens are accepted only where the settings name the class that does so. A setting whose package is not
installed is rejected. Must not know tokens.

Source: Kafka's OAuthBearerValidatorCallbackHandler and OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from pybroker.config.errors import ConfigError
from pybroker.config.extras import install_command
from pybroker.config.key import LONG_MAX, parse_list

if TYPE_CHECKING:
    from collections.abc import Mapping

OAUTHBEARER = "OAUTHBEARER"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER = "sasl.server.callback.handler.class"
SECURED_CLASS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
UNSECURED_CLASS = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
LOGIN_HANDLER = "sasl.login.callback.handler.class"
LOGIN_CLASS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
"""Fetches tokens."""
UNSECURED_LOGIN_CLASS = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
"""Creates unsigned tokens, from the login module's options with the prefix `UNSECURED_LOGIN`."""
LOGIN_HANDLERS = (LOGIN_CLASS, UNSECURED_LOGIN_CLASS)
UNSECURED_LOGIN = "unsecuredLogin"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"
_PREFIX = "sasl.oauthbearer."
_NUMBERS = {
    "jwks.endpoint.refresh.ms": 3_600_000,
    "jwks.endpoint.retry.backoff.ms": 100,
    "jwks.endpoint.retry.backoff.max.ms": 10_000,
    "clock.skew.seconds": 30,
}
_RANGE = f"from 0 to {LONG_MAX}"
_LONGEST = len(str(LONG_MAX))


class KeySource(NamedTuple):
    """The source of the signing keys of tokens."""

    url: str
    refresh_ms: int
    backoff_ms: int
    backoff_max_ms: int
    trusted: str | None
    """File of the CA certificates for an https: URL; None for the system's."""


class BearerSettings(msgspec.Struct, frozen=True):
    """The validation of tokens on a listener."""

    keys: KeySource | None
    """None: unsigned tokens are accepted."""
    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    user_claim: str = "sub"
    skew_s: float = 0
    scopes: tuple[str, ...] = ()
    """Scopes that an unsigned token must have."""


class Texts(Protocol):
    """The settings of one listener."""

    def get(self, name: str, mechanism: str | None = None) -> tuple[str, str] | None:
        """Return the full name and the text of the effective setting of a key; None without one."""


def build_bearer(listener: str, texts: Texts, options: Mapping[str, str]) -> BearerSettings:
    """Return the token validation of a listener; `options` are those of its login module. Raises ConfigError."""
    handler = texts.get(HANDLER, OAUTHBEARER)
    named = None if handler is None else handler[1].strip()
    found = texts.get(JWKS_URL)
    url = None if found is None else found[1].strip()
    if named == UNSECURED_CLASS and not url:
        return _unsecured(listener, options)
    if named not in (None, "", SECURED_CLASS):
        words = "no class: none is loaded" if url else f"{SECURED_CLASS} with {JWKS_URL}, or {UNSECURED_CLASS}"
        raise ConfigError(_shown(listener, HANDLER), named, words)
    if not url:
        words = (
            f"an https: or file: address of the keys that sign tokens; unsigned tokens are accepted only with "
            f"listener.name.{listener.lower()}.oauthbearer.{HANDLER}={UNSECURED_CLASS}, from every client"
        )
        raise ConfigError(_shown(listener, JWKS_URL), "", words)
    return _signed(listener, url, texts, options)


def _signed(listener: str, url: str, texts: Texts, options: Mapping[str, str]) -> BearerSettings:
    if not _is_key_address(url):
        raise ConfigError(_shown(listener, JWKS_URL), url, "an https: or file: address")
    if find_spec("jwt") is None or find_spec("cryptography") is None:
        words = f"the packages that check tokens: {install_command('oauth')}"
        raise ConfigError(_shown(listener, JWKS_URL), url, words)
    numbers = {name: _number(listener, name, default, texts) for name, default in _NUMBERS.items()}
    refresh_ms, backoff_ms, backoff_max_ms, skew_s = numbers.values()
    return BearerSettings(
        KeySource(url, refresh_ms, backoff_ms, backoff_max_ms, options.get("ssl.truststore.location")),
        parse_list(_text(texts, "expected.audience") or ""),
        _text(texts, "expected.issuer"),
        _text(texts, "scope.claim.name") or "scope",
        _text(texts, "sub.claim.name") or "sub",
        skew_s,
    )


def _is_key_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:  # A bracket that is not closed.
        return False
    return bool((parts.scheme == "https" and parts.netloc) or (parts.scheme == "file" and parts.path))


def _unsecured(listener: str, options: Mapping[str, str]) -> BearerSettings:
    def option(name: str) -> str | None:
        return options.get(f"unsecuredValidator{name}") or None

    skew = option("AllowableClockSkewMs") or "0"
    skew_ms = _whole(skew)
    if skew_ms is None:
        name = f"listener.name.{listener.lower()}.oauthbearer.sasl.jaas.config: unsecuredValidatorAllowableClockSkewMs"
        raise ConfigError(name, skew, f"milliseconds, {_RANGE}")
    return BearerSettings(
        None,
        scope_claim=option("ScopeClaimName") or "scope",
        user_claim=option("PrincipalClaimName") or "sub",
        skew_s=skew_ms / 1000,
        scopes=tuple((option("RequiredScope") or "").split()),
    )


def _number(listener: str, name: str, default: int, texts: Texts) -> int:
    text = _text(texts, name)
    if text is None:
        return default
    number = _whole(text)
    if number is None:
        raise ConfigError(_shown(listener, _PREFIX + name), text, f"a number, {_RANGE}")
    return number


def _whole(text: str) -> int | None:
    """Return a number that fits a Java long, None for another text."""
    # The length is checked first: int() raises for thousands of digits.
    if not (text.isascii() and text.isdecimal()) or len(text) > _LONGEST:
        return None
    number = int(text)
    return number if number <= LONG_MAX else None


def _text(texts: Texts, name: str) -> str | None:
    found = texts.get(_PREFIX + name)
    return (None if found is None else found[1].strip()) or None


def _shown(listener: str, name: str) -> str:
    return f"{listener} (SASL): {name}"
