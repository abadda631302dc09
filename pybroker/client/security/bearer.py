"""OAUTHBEARER's tokens: their sources, and their renewal before they expire.

Owns the client credentials grant (RFC 6749, 4.4; KIP-768), tokens from files and from a function of the program, and
one thread for each client that fetches the next token before the last one expires. That thread ends with the
credentials. Unsigned tokens belong to `unsecured`.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import re
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pybroker.client import native
from pybroker.client.errors import AuthenticationError, SettingError
from pybroker.client.security import unsecured

if TYPE_CHECKING:
    import urllib.request

    from pybroker.client.settings.security import SecuritySettings

_log = logging.getLogger("pybroker.client")

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""RFC 6750, 2.1."""
_EXTENSION = re.compile(r"[A-Za-z]+")
_LONGEST_RESPONSE = 1 << 20
_DEFAULT_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 5.0
"""Interval at which the thread checks whether its client still exists."""


@dataclass(frozen=True, slots=True)
class BearerToken:
    """A token, and its expiry in seconds of Unix time (None: never, or as its claim `exp` defines)."""

    value: str = field(repr=False)
    expires_s: float | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)


def open_bearer(settings: SecuritySettings, options: Mapping[str, str]) -> native.SaslCredentials:
    """Fetch the first token, and start the renewal of later ones. Raises SettingError, AuthenticationError."""
    fetch = _source(settings, options)
    credentials = native.SaslCredentials.oauthbearer()
    token = _fetched(fetch)
    _put(credentials, token)
    if _end_of(token) is not None:
        renewal = _Renewal(settings, fetch, credentials.share())
        threading.Thread(target=renewal.run, args=(token,), name="pybroker-token", daemon=True).start()
    return credentials


def _source(settings: SecuritySettings, options: Mapping[str, str]) -> Callable[[], BearerToken]:
    if settings.token_provider is not None:
        return settings.token_provider
    url = settings.sasl_oauthbearer_token_endpoint_url
    if unsecured.makes_own(options):
        if url is not None:
            raise SettingError(
                f"sasl.oauthbearer.token.endpoint.url={url}: the login module in sasl.jaas.config makes unsecured "
                f"tokens itself (unsecuredLogin...); set only one of them"
            )
        return lambda: _made(options)
    if url is None:
        raise SettingError(
            "sasl.mechanism=OAUTHBEARER needs a token: set sasl.oauthbearer.token.endpoint.url, or a function as "
            "sasl.oauthbearer.token.provider"
        )
    extensions = {
        name.removeprefix("extension_"): value for name, value in options.items() if name.startswith("extension_")
    }
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        return lambda: BearerToken(_read_file(parts.path), None, extensions)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingError(f"sasl.oauthbearer.token.endpoint.url={url}: expected an https:, http: or file: address")
    client_id = settings.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = settings.sasl_oauthbearer_client_credentials_client_secret or options.get("clientSecret")
    if not client_id or not secret:
        raise SettingError(
            "sasl.oauthbearer.token.endpoint.url needs sasl.oauthbearer.client.credentials.client.id and "
            "client.secret, or clientId and clientSecret in sasl.jaas.config"
        )
    scope = settings.sasl_oauthbearer_scope or options.get("scope")
    request = _grant(url, client_id, secret, scope, encoded=settings.sasl_oauthbearer_header_urlencode)
    wait_ms = settings.sasl_login_read_timeout_ms or settings.sasl_login_connect_timeout_ms
    return lambda: _query(request, extensions, wait_ms / 1000 if wait_ms else _DEFAULT_TIMEOUT_S)


def _made(options: Mapping[str, str]) -> BearerToken:
    claims = unsecured.build_claims(options, time.time())
    return BearerToken(unsecured.encode(claims), claims["exp"], unsecured.extensions_of(options))


def _grant(url: str, client_id: str, secret: str, scope: str | None, *, encoded: bool) -> urllib.request.Request:
    if encoded:
        client_id, secret = urllib.parse.quote_plus(client_id), urllib.parse.quote_plus(secret)
    form = {"grant_type": "client_credentials", **({"scope": scope} if scope else {})}
    user = base64.b64encode(f"{client_id}:{secret}".encode()).decode()
    headers = {"Accept": "application/json", "Authorization": f"Basic {user}", "Cache-Control": "no-cache"}
    return urllib.request.Request(url, urllib.parse.urlencode(form).encode(), headers, method="POST")


def _query(request: urllib.request.Request, extensions: Mapping[str, str], timeout_s: float) -> BearerToken:
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            found = json.loads(response.read(_LONGEST_RESPONSE))
    except urllib.error.HTTPError as error:
        error.close()
        raise AuthenticationError(f"{request.full_url}: the token server returned {error.code}") from None
    except (OSError, ValueError) as error:
        raise AuthenticationError(f"{request.full_url}: no token: {error}") from None
    token = found.get("access_token") if isinstance(found, dict) else None
    if not isinstance(token, str):
        raise AuthenticationError(f"{request.full_url}: the response has no access_token")
    lasts = found.get("expires_in")
    return BearerToken(token, time.time() + lasts if isinstance(lasts, int | float) else None, extensions)


def _read_file(path: str) -> str:
    try:
        with open(urllib.parse.unquote(path), encoding="ascii") as file:
            return file.read(_LONGEST_RESPONSE).strip()
    except (OSError, ValueError) as error:
        raise AuthenticationError(f"{path}: no token: {error}") from None


def _fetched(fetch: Callable[[], BearerToken]) -> BearerToken:
    token = fetch()
    if not isinstance(token, BearerToken):
        raise SettingError("sasl.oauthbearer.token.provider: must return a BearerToken")
    if _TOKEN.fullmatch(token.value) is None:
        raise AuthenticationError("the token has characters that no bearer token has (RFC 6750)")
    for name, value in token.extensions.items():
        if _EXTENSION.fullmatch(name) is None or name.lower() == "auth" or not value.isprintable():
            raise SettingError(f"extension {name!r} of a token: must be letters, not auth, with a printable value")
    return token


def _put(credentials: native.SaslCredentials, token: BearerToken) -> None:
    end = _end_of(token)
    credentials.set_token(token.value, None if end is None else round(end * 1000), list(token.extensions.items()))


def _end_of(token: BearerToken) -> float | None:
    """Return the expiry of a token in seconds of Unix time: the given one, else its claim `exp`."""
    if token.expires_s is not None:
        return token.expires_s
    parts = token.value.split(".")
    if len(parts) < 2:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError):
        return None


class _Renewal:
    """Fetches the next token before the last one expires (`sasl.login.refresh.*`), until the credentials are freed."""

    def __init__(
        self,
        settings: SecuritySettings,
        fetch: Callable[[], BearerToken],
        credentials: native.SaslCredentials,
    ) -> None:
        self._fetch, self._credentials = fetch, credentials
        self._factor = settings.sasl_login_refresh_window_factor
        self._jitter = settings.sasl_login_refresh_window_jitter
        self._least_s = settings.sasl_login_refresh_min_period_seconds
        self._buffer_s = settings.sasl_login_refresh_buffer_seconds
        self._rest_ms = settings.sasl_login_retry_backoff_ms
        self._longest_rest_ms = settings.sasl_login_retry_backoff_max_ms

    def run(self, token: BearerToken) -> None:
        """Renew until the credentials are freed, or a token never expires."""
        failures = 0
        pause = self._pause(token)
        while pause is not None and self._wait(pause):
            try:
                token = _fetched(self._fetch)
            except Exception as error:  # noqa: BLE001  the program's own function may raise anything
                _log.warning("Failed to renew the OAUTHBEARER token, retrying: %s", error)
                pause = min(self._rest_ms * 2.0**failures, self._longest_rest_ms) / 1000
                failures += 1
                continue
            failures = 0
            _put(self._credentials, token)
            pause = self._pause(token)

    def _wait(self, pause: float) -> bool:
        """Wait, and return whether the credentials are still referenced elsewhere."""
        until = time.monotonic() + pause
        while not self._credentials.is_abandoned and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _POLL_INTERVAL_S))
        return not self._credentials.is_abandoned

    def _pause(self, token: BearerToken) -> float | None:
        end = _end_of(token)
        if end is None:
            return None
        left = end - time.time()
        share = left * (self._factor + random.uniform(0, self._jitter))
        if self._least_s + self._buffer_s < left:
            share = min(max(share, self._least_s), left - self._buffer_s)
        return max(share, 0.0)
