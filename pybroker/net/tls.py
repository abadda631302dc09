"""TLS of listeners: their certificates, which are reloaded while the listeners are open, and the principals of clients.

Owns when certificates are reloaded: after changed settings, and after changed files. Open connections are not affected.
Must not know the formats of key stores.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pybroker.config.errors import ConfigError
from pybroker.security.authorizer import one_line
from pybroker.security.distinguished_name import CertificateError, subject_of, valid_until
from pybroker.security.key_material import build_server_tls
from pybroker.security.principal_builder import BuilderError, Proof
from pybroker.security.principal_mapping import MappingError, NoRuleError, map_name, parse_rules
from pybroker.security.principals import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pybroker.config.security.tls import ListenerTls
    from pybroker.net.native import DataPlane, PeerCertificate
    from pybroker.security.native import ServerTls
    from pybroker.security.principal_mapping import Rule

log = logging.getLogger("pybroker.net")

HANDSHAKE_TIMEOUT_MS = 30_000
"""Timeout of a TLS handshake. Kafka uses `connections.max.idle.ms`, ten minutes."""
_POLL_INTERVAL_S = 5.0
_WARN = timedelta(days=30)
_AGAIN = timedelta(days=1)

_Stamp = tuple[tuple[str, int, int], ...]


class TlsListeners:
    """The TLS listeners of one data plane, from before they are opened until they are stopped."""

    def __init__(self, settings: dict[str, ListenerTls], builder: Callable[[Proof], Principal] | None = None) -> None:
        """Read the key and trust stores.

        Raises ConfigError. `builder`, if any, makes principals instead of the mapping rules.
        """
        self._builder = builder
        self._settings = settings
        self._rules = {name: _rules(one) for name, one in settings.items()}
        self._stamps = {name: _stamp(one) for name, one in settings.items()}
        self._made = {name: _build(one) for name, one in settings.items()}
        self._reported: dict[str, datetime] = {}
        self._data_plane: DataPlane | None = None
        self._watch: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[], None]] = []

    def of(self, listener: str) -> tuple[ServerTls, int] | None:
        """Return a listener's TLS settings and its handshake timeout in ms; None for a listener without TLS."""
        made = self._made.get(listener)
        return None if made is None else (made[0], HANDSHAKE_TIMEOUT_MS)

    def start(self, data_plane: DataPlane, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Start to poll the files for changes, and to warn of certificates that expire soon."""
        self._data_plane = data_plane
        if self._settings:
            self._report_expiry(now())
            self._watch = asyncio.get_running_loop().create_task(self._watch_files(now))

    def open(self, name: str, settings: ListenerTls) -> None:
        """Read the stores of a listener that is opened later. Raises ConfigError."""
        stamp, rules, made = _stamp(settings), _rules(settings), _build(settings)
        self._settings[name], self._rules[name], self._stamps[name], self._made[name] = settings, rules, stamp, made
        if self._watch is None and self._data_plane is not None:
            self.start(self._data_plane)

    def close(self, name: str) -> None:
        """Remove a closed listener."""
        for known in (self._settings, self._rules, self._stamps, self._made, self._reported):
            known.pop(name, None)

    def on_renewed(self, callback: Callable[[], None]) -> None:
        """Register `callback` for reloaded key or trust stores."""
        self._callbacks.append(callback)

    def stop(self) -> None:
        """Stop polling files, and remove all callbacks."""
        self._callbacks.clear()
        if self._watch is not None:
            self._watch.cancel()

    def reconfigure(self, settings: dict[str, ListenerTls]) -> None:
        """Apply changed settings to new connections.

        Stores that cannot be read are logged, and the previous ones kept.
        """
        for name, one in settings.items():
            if name in self._settings and one != self._settings[name]:
                self._renew(name, one)

    def reload_changed_files(self, now: datetime) -> None:
        """Reload key and trust stores that have changed on disk."""
        for name, one in self._settings.items():
            if _stamp(one) != self._stamps[name]:
                self._renew(name, one)
        self._report_expiry(now)

    def name_peer(self, event: PeerCertificate) -> None:
        """Set the principal of a connection by its certificate. Without a matching rule, the connection is closed."""
        if self._data_plane is None or event.listener not in self._rules:  # The listener was closed.
            return
        try:
            principal = self._principal_of(event)
        except (NoRuleError, CertificateError, BuilderError) as error:
            log.warning("connection from %s closed: %s", event.peer, error)
            self._data_plane.close_connection(event.connection)
            return
        self._data_plane.name_peer(event.connection, principal)

    def _principal_of(self, event: PeerCertificate) -> Principal:
        subject = subject_of(event.certificate)
        if self._builder is None:
            return Principal("User", map_name(self._rules[event.listener], subject))
        host = event.peer.rpartition(":")[0].strip("[]")
        proof = Proof(event.listener, host, "", subject, event.certificate)
        principal = self._builder(proof)
        log.info("Authenticated %s as %s by certificate on %s", event.peer, one_line(str(principal)), event.listener)
        return principal

    async def _watch_files(self, now: Callable[[], datetime]) -> None:
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            self.reload_changed_files(now())

    def _renew(self, name: str, settings: ListenerTls) -> None:
        # The stamp is taken first, so that a change during the reading causes another reload.
        stamp = _stamp(settings)
        try:
            rules, made = _rules(settings), _build(settings)
        except ConfigError as error:
            log.error("listener %s: keeping the previous certificate: %s", name, error)
            self._stamps[name] = stamp
            return
        self._settings[name], self._rules[name], self._stamps[name], self._made[name] = settings, rules, stamp, made
        self._reported.pop(name, None)
        if self._data_plane is not None and self._data_plane.set_listener_tls(name, made[0], HANDSHAKE_TIMEOUT_MS):
            log.info("listener %s: new connections use the reloaded certificate", name)
        for callback in self._callbacks:
            callback()

    def expiries(self) -> dict[str, datetime]:
        """Return the expiry of each listener's certificate, without certificates that cannot be parsed."""
        found = {}
        for name, (_, certificate) in list(self._made.items()):
            try:
                found[name] = valid_until(certificate)
            except CertificateError:
                continue
        return found

    def _report_expiry(self, now: datetime) -> None:
        for name, (_, certificate) in self._made.items():
            try:
                until = valid_until(certificate)
            except CertificateError:
                continue
            if until - now > _WARN or now - self._reported.get(name, datetime.min.replace(tzinfo=UTC)) < _AGAIN:
                continue
            self._reported[name] = now
            words = "has expired" if until <= now else f"expires in {(until - now).days} days"
            log.warning("the certificate of listener %s %s (%s)", name, words, until.isoformat())


def _rules(settings: ListenerTls) -> tuple[Rule, ...]:
    try:
        return parse_rules(settings.principal_mapping_rules)
    except MappingError as error:
        raise ConfigError("ssl.principal.mapping.rules", settings.principal_mapping_rules, str(error)) from None


def _build(settings: ListenerTls) -> tuple[ServerTls, bytes]:
    """Return a listener's TLS settings and its certificate (DER). Raises ConfigError."""
    for store in (settings.keys, settings.trust):
        if "\0" in (store.location or ""):
            raise ConfigError(f"{store.setting}.location", ascii(store.location), "the path of a file, without NUL")
    return build_server_tls(settings)


def _stamp(settings: ListenerTls) -> _Stamp:
    """Return a value that changes if one of the files changes. Missing files are ignored."""
    return tuple(_stamps_of(store.location for store in (settings.keys, settings.trust) if store.location))


def _stamps_of(locations: Iterable[str | None]) -> Iterable[tuple[str, int, int]]:
    for location in locations:
        try:
            status = Path(location or "").stat()
        except (OSError, ValueError):  # ValueError: a path with a NUL.
            continue
        yield location or "", status.st_mtime_ns, status.st_ino
