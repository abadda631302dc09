"""JSON Web Tokens: validation against a listener's settings.

Owns both kinds: tokens signed by an issuer, with keys of its JWKS (KIP-768), and unsigned tokens. No part of a token
selects its validation: a key has an algorithm of its own, and a token without a signature is rejected unless the
listener accepts unsigned ones. Calls must run on worker threads. Must not know exchanges.

Keys are fetched for the first token, and again when they are old; meanwhile tokens are validated with the cached
keys. An unknown key id triggers a fetch, at most once a minute for all clients and keys: the token is rejected until
then, as in Kafka.

Source: Kafka's BrokerJwtValidator, RefreshingHttpsJwks and OAuthBearerUnsecuredJws; RFC 7519, RFC 8725.
"""

from __future__ import annotations

import json
import logging
import ssl
import threading
import time
from base64 import urlsafe_b64decode
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pybroker.config.security.oauth import BearerSettings, KeySource

log = logging.getLogger("pybroker.security")

_UNKNOWN_PAUSE_S = 60
"""Minimum interval of fetches for unknown key ids, Kafka's `MISSING_KEY_ID_CACHE_IN_MS`."""
_FETCH_S = 10
_LARGEST_KEYS = 1024**2
"""Maximum bytes of a JWKS."""
_PARTS = 3
_ALGORITHMS = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}
"""Algorithms by the type of a key. None uses a secret shared with the issuer."""


class Bearer(NamedTuple):
    """The subject of a token."""

    user: str
    expires_ms: int


class TokenError(ValueError):
    """A token is rejected. The message has the reason, without usable parts of the token."""

    def __init__(self, words: str, status: str = "invalid_token", scope: str | None = None) -> None:
        """`status` and `scope` are for the client (RFC 7628)."""
        super().__init__(words)
        self.status = status
        self.scope = scope


class Validator:
    """Validates the tokens of one listener. For any thread."""

    def __init__(self, settings: BearerSettings, wall_ms: Callable[[], int]) -> None:
        self.settings = settings
        self._wall_ms = wall_ms
        self._keys = None if settings.keys is None else Keys(settings.keys)

    def check(self, token: str) -> Bearer:
        """Validate a token and return its subject. Raises TokenError."""
        settings = self.settings
        claims = _unsigned_claims(token) if self._keys is None else _signed_claims(token, self._keys, settings)
        now_s, skew_s = self._wall_ms() / 1000, settings.skew_s
        user, expires_s = claims.get(settings.user_claim), _time(claims, "exp")
        issued_s = _time(claims, "iat")
        if not isinstance(user, str) or not user.strip():
            raise TokenError(f"the claim {settings.user_claim} contains no user")
        if expires_s is None:
            raise TokenError("the token has no expiration time (exp)")
        if expires_s <= now_s - skew_s:
            raise TokenError("the token has expired")
        if issued_s is None and self._keys is not None:
            raise TokenError("the token has no issue time (iat)")
        if issued_s is not None and issued_s > now_s + skew_s:
            raise TokenError("the token was issued in the future (iat)")
        begins_s = _time(claims, "nbf")
        if begins_s is not None and begins_s > now_s + skew_s:
            raise TokenError("the token is not valid yet (nbf)")
        lacking = [scope for scope in settings.scopes if scope not in _scopes(claims, settings.scope_claim)]
        if lacking:
            scope = " ".join(settings.scopes)
            raise TokenError(f"the token lacks the scope {', '.join(lacking)}", "insufficient_scope", scope)
        return Bearer(user, int(expires_s * 1000))


class Keys:
    """The keys of one issuer, by id. For any thread; one thread at a time fetches them."""

    def __init__(self, source: KeySource, now_s: Callable[[], float] = time.monotonic) -> None:
        self._source = source
        self._now_s = now_s
        self._lock = threading.Lock()
        # Guarded by the lock.
        self._keys: dict[str | None, dict[str, Any]] | None = None
        self._got_s = 0.0
        self._requested_unknown_s: float | None = None
        self._failures = 0
        self._not_before_s = 0.0
        # Not None while keys are fetched.
        self._fetch: Future[None] | None = None

    def find(self, key_id: str | None) -> dict[str, Any]:
        """Return a key as its JWK; without an id the only one. Raises TokenError."""
        with self._lock:
            fetch = self._begin_if_due(key_id)
            first = self._keys is None
        if first:
            if fetch is None:
                raise TokenError("the keys that sign tokens are unavailable")
            wait([fetch], _FETCH_S + 1)
        with self._lock:
            keys = self._keys or {}
            if key_id is None and len(keys) == 1:
                return next(iter(keys.values()))
            found = keys.get(key_id)
        if found is None:
            raise TokenError("the token is signed with a key that the issuer does not publish")
        return found

    def _begin_if_due(self, key_id: str | None) -> Future[None] | None:
        """Start a fetch where the keys are old, or lack one. Returns its future. Called with the lock."""
        now = self._now_s()
        if self._fetch is None and now >= self._not_before_s and self._is_due(key_id, now):
            self._fetch = Future()
            threading.Thread(target=self._get, name="pybroker-jwks", daemon=True).start()
        return self._fetch

    def _is_due(self, key_id: str | None, now: float) -> bool:
        if self._keys is None or now - self._got_s >= self._source.refresh_ms / 1000:
            return True
        if key_id is None or key_id in self._keys:
            return False
        requested = self._requested_unknown_s
        if requested is not None and now - requested < _UNKNOWN_PAUSE_S:
            return False
        self._requested_unknown_s = now
        return True

    def _get(self) -> None:
        try:
            keys = read_keys(self._source)
        except Exception as error:  # noqa: BLE001  # whatever it was, those who wait for keys are answered
            log.warning("Failed to read the token keys from %s: %s", self._source.url, error)
            keys = None
        with self._lock:
            now = self._now_s()
            if keys is None:
                pause_ms = min(self._source.backoff_ms * 2**self._failures, self._source.backoff_max_ms)
                self._failures = min(self._failures + 1, 32)
                self._not_before_s = now + pause_ms / 1000
            else:
                self._keys, self._got_s, self._failures = keys, now, 0
            fetch, self._fetch = self._fetch, None
        if fetch is not None:
            fetch.set_result(None)


def read_keys(source: KeySource) -> dict[str | None, dict[str, Any]]:
    """Fetch a JWKS, and return its signature keys by id. Raises OSError and ValueError."""
    parts = urlsplit(source.url)
    if parts.scheme == "file":
        with open(unquote(parts.path), "rb") as file:
            text = file.read(_LARGEST_KEYS + 1)
    else:
        context = ssl.create_default_context(cafile=source.trusted)
        request = Request(source.url, headers={"Accept": "application/json"})
        with urlopen(request, timeout=_FETCH_S, context=context) as response:
            if urlsplit(response.url).scheme != "https":
                raise ValueError(f"it was redirected to {response.url}, which is not an https: address")
            text = response.read(_LARGEST_KEYS + 1)
    if len(text) > _LARGEST_KEYS:
        raise ValueError(f"it has more than {_LARGEST_KEYS} bytes")
    document = json.loads(text)
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list):
        raise ValueError("it is not a JWKS: it has no list of keys")
    usable = [key for key in keys if isinstance(key, dict) and key.get("kty") in _ALGORITHMS]
    return {key.get("kid"): key for key in usable if key.get("use", "sig") == "sig"}


def _signed_claims(token: str, keys: Keys, settings: BearerSettings) -> Mapping[str, Any]:
    """Return the claims of a token with valid signature, audience and issuer; times are checked later."""
    import jwt  # of the extra `oauth`, which may be missing

    try:
        header = jwt.get_unverified_header(token)
        key = keys.find(header.get("kid"))
        algorithm = header.get("alg")
        if algorithm not in _ALGORITHMS[key["kty"]] or key.get("alg", algorithm) != algorithm:
            raise TokenError(f"the token is signed by {str(algorithm)[:16]!r}, which does not fit the key")
        required = ["exp", "iat"] + (["aud"] if settings.audiences else []) + (["iss"] if settings.issuer else [])
        claims: Mapping[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(key, algorithm=algorithm).key,
            algorithms=[algorithm],
            audience=list(settings.audiences) or None,
            issuer=settings.issuer,
            options={
                "require": required,
                "verify_aud": bool(settings.audiences),
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "verify_sub": False,
                "verify_jti": False,
            },
        )
    except jwt.PyJWTError as error:
        raise TokenError(f"{type(error).__name__}: {error}") from None
    return claims


def _unsigned_claims(token: str) -> Mapping[str, Any]:
    """Return the claims of an unsigned token whose header has the algorithm none."""
    parts = token.split(".")
    if len(parts) != _PARTS:
        raise TokenError(f"the token has {len(parts)} parts, not {_PARTS}")
    header, claims = (_json(part) for part in parts[:2])
    if header.get("alg") != "none" or parts[2]:
        raise TokenError("the token is signed, but this listener accepts only unsigned tokens")
    return claims


def _json(part: str) -> Mapping[str, Any]:
    try:
        read = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        raise TokenError("a part of the token is not base64-encoded JSON") from None
    if not isinstance(read, dict):
        raise TokenError("a part of the token is not a JSON object")
    return read


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    """Return a time in seconds since 1970; None for a missing claim. Raises TokenError for an invalid one."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        raise TokenError(f"the claim {name} is not a time")
    return float(value)


def _scopes(claims: Mapping[str, Any], name: str) -> list[str]:
    value = claims.get(name)
    if isinstance(value, str):
        return value.split()
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
