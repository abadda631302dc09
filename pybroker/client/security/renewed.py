"""TLS and credentials of new connections in a long-lived process: stores are reloaded when they change.

Owns the time of the check: before a connection is opened. Open connections are not affected. Credentials are
recreated only where the settings of the identity have changed, because tokens and tickets have a renewal of their
own, and token servers are queried at the start and by a thread, never on the loop. Must not know the users of the
connections.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.client.errors import ClientError
from pybroker.client.security import open_security
from pybroker.client.settings.security import SecuritySettings
from pybroker.config.errors import ConfigError, RefusedError
from pybroker.config.security.oauth import TOKEN_URL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.client import native

log = logging.getLogger("pybroker.security")

_Stamp = tuple[tuple[str, int, int], ...]


class RenewedSecurity:
    """TLS and credentials of one kind of connections. Used from one thread."""

    def __init__(self, what: str, properties: Mapping[str, str]) -> None:
        """Load the stores and credentials of `properties`, which are keys of Kafka's clients; `what` names the
        connections in log messages.

        Raises ConfigError.
        """
        self._what = what
        self._properties = dict(properties)
        self._stamp = _stamp(self._properties)
        self._settings = _read(what, self._properties, None)

    @property
    def tls(self) -> native.ClientTls | None:
        """Return the current TLS object of connections; None: they are not encrypted."""
        self._reload_changed_files()
        return self._settings.tls

    @property
    def credentials(self) -> native.SaslCredentials | None:
        """Return the current credentials; None: connections do not authenticate."""
        return self._settings.credentials

    def secure(self, settings: SecuritySettings) -> None:
        """Set TLS and credentials of connections that are opened with these settings from now on."""
        values = settings.__dict__
        values["tls"], values["credentials"] = self.tls, self.credentials

    def reconfigure(self, properties: Mapping[str, str]) -> None:
        """Apply changed settings. Invalid ones are logged, and the previous ones are kept."""
        if properties != self._properties:
            self._renew(dict(properties))

    def _reload_changed_files(self) -> None:
        if _stamp(self._properties) != self._stamp:
            self._renew(self._properties)

    def _renew(self, properties: dict[str, str]) -> None:
        # The stamp is taken first, so that a store that changes while it is read is read again.
        self._stamp = _stamp(properties)
        is_same = _login_of(properties) == _login_of(self._properties)
        try:
            if not is_same and _queries_a_server(properties):
                words = "the previous value: a change of the token server needs a restart"
                raise ConfigError(TOKEN_URL, properties[TOKEN_URL], words)
            self._settings = _read(self._what, properties, self._settings.credentials if is_same else None)
        except ConfigError as error:
            log.error("Keeping the previous TLS settings of %s: %s", self._what, error)
            return
        self._properties = properties
        log.info("%s: new connections use the reloaded files", self._what)


def _login_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that define the client's identity."""
    return {key: text for key, text in properties.items() if not key.startswith("ssl.")}


def _queries_a_server(properties: Mapping[str, str]) -> bool:
    return properties.get(TOKEN_URL, "").startswith(("http:", "https:"))


def _read(what: str, properties: Mapping[str, str], kept: native.SaslCredentials | None) -> SecuritySettings:
    """Load TLS and credentials from properties, except credentials that are kept. Raises ConfigError."""
    settings = SecuritySettings(properties)
    settings.__dict__["credentials"] = kept
    settings.__dict__["named"] = frozenset(properties)
    settings.__dict__["token_provider"] = None
    try:
        open_security(settings)
    except (ClientError, ValueError) as error:
        raise RefusedError("security.protocol", properties.get("security.protocol"), f"{what}: {error}") from None
    return settings


def _stamp(properties: Mapping[str, str]) -> _Stamp:
    """Return values that change when one of the stores changes. A missing store has no value."""
    found = []
    for key in ("ssl.keystore.location", "ssl.truststore.location"):
        location = properties.get(key)
        if location is None:
            continue
        try:
            status = Path(location).stat()
        except (OSError, ValueError):  # A text with a NUL is no path: ValueError.
            continue
        found.append((location, status.st_mtime_ns, status.st_ino))
    return tuple(found)
