"""TLS of open listeners: what they encrypt by, changed while they are open, and who their clients are.

Owns when certificates are read again: when a setting of theirs changes, and when a file has. Connections that are open
go on as they began. Must not know how certificates are stored.
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
"""How long a client may take for its handshake. Kafka has `connections.max.idle.ms` for that, ten minutes."""
_POLL_INTERVAL_S = 5.0
_WARN = timedelta(days=30)
_AGAIN = timedelta(days=1)

_Stamp = tuple[tuple[str, int, int], ...]


class TlsListeners:
    """The listeners of one data plane that encrypt, from before they are opened until they are stopped."""

    def __init__(self, settings: dict[str, ListenerTls], builder: Callable[[Proof], Principal] | None = None) -> None:
        """Read what each needs; raises ConfigError. `builder` names clients instead of the mapping rules."""
        self._builder = builder
        self._settings = settings
        self._rules = {name: _rules(one) for name, one in settings.items()}
        self._stamps = {name: _stamp(one) for name, one in settings.items()}
        self._made = {name: _build(one) for name, one in settings.items()}
        self._said: dict[str, datetime] = {}
        self._data_plane: DataPlane | None = None
        self._watch: asyncio.Task[None] | None = None
        self._callbacks: list[Callable[[], None]] = []

    def of(self, listener: str) -> tuple[ServerTls, int] | None:
        """Return what a listener is opened with, and the time for its handshakes in ms; None for one without TLS."""
        made = self._made.get(listener)
        return None if made is None else (made[0], HANDSHAKE_TIMEOUT_MS)

    def start(self, data_plane: DataPlane, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Look at the files from now on, and say when a certificate is about to expire."""
        self._data_plane = data_plane
        if self._settings:
            self._say_expiry(now())
            self._watch = asyncio.get_running_loop().create_task(self._watch_files(now))

    def open(self, name: str, settings: ListenerTls) -> None:
        """Read what a listener needs that is opened while others are; raises ConfigError."""
        stamp, rules, made = _stamp(settings), _rules(settings), _build(settings)
        self._settings[name], self._rules[name], self._stamps[name], self._made[name] = settings, rules, stamp, made
        if self._watch is None and self._data_plane is not None:
            self.start(self._data_plane)

    def close(self, name: str) -> None:
        """Forget a listener that is closed."""
        for known in (self._settings, self._rules, self._stamps, self._made, self._said):
            known.pop(name, None)

    def on_renewed(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when what a listener shows, or whom it trusts, was read again."""
        self._callbacks.append(callback)

    def stop(self) -> None:
        """Look no more, and hold nobody who wanted to know."""
        self._callbacks.clear()
        if self._watch is not None:
            self._watch.cancel()

    def reconfigure(self, settings: dict[str, ListenerTls]) -> None:
        """Take changed settings for the connections that come from now on; what cannot be read is logged and left."""
        for name, one in settings.items():
            if name in self._settings and one != self._settings[name]:
                self._renew(name, one)

    def reload_changed_files(self, now: datetime) -> None:
        """Reload key and trust stores that have changed on disk."""
        for name, one in self._settings.items():
            if _stamp(one) != self._stamps[name]:
                self._renew(name, one)
        self._say_expiry(now)

    def name_peer(self, event: PeerCertificate) -> None:
        """Say who has shown a certificate; a connection whose certificate no rule is for is closed."""
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
        log.info("%s is %s, by its certificate on %s", event.peer, one_line(str(principal)), event.listener)
        return principal

    async def _watch_files(self, now: Callable[[], datetime]) -> None:
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            self.reload_changed_files(now())

    def _renew(self, name: str, settings: ListenerTls) -> None:
        # The stamp is taken first: what changes while it is read is read again.
        stamp = _stamp(settings)
        try:
            rules, made = _rules(settings), _build(settings)
        except ConfigError as error:
            log.error("listener %s: keeping the previous certificate: %s", name, error)
            self._stamps[name] = stamp
            return
        self._settings[name], self._rules[name], self._stamps[name], self._made[name] = settings, rules, stamp, made
        self._said.pop(name, None)
        if self._data_plane is not None and self._data_plane.set_listener_tls(name, made[0], HANDSHAKE_TIMEOUT_MS):
            log.info("listener %s: new connections use the reloaded certificate", name)
        for callback in self._callbacks:
            callback()

    def expiries(self) -> dict[str, datetime]:
        """Return when the certificate of each listener ends; one that cannot be read is left out."""
        found = {}
        for name, (_, certificate) in list(self._made.items()):
            try:
                found[name] = valid_until(certificate)
            except CertificateError:
                continue
        return found

    def _say_expiry(self, now: datetime) -> None:
        for name, (_, certificate) in self._made.items():
            try:
                until = valid_until(certificate)
            except CertificateError:
                continue
            if until - now > _WARN or now - self._said.get(name, datetime.min.replace(tzinfo=UTC)) < _AGAIN:
                continue
            self._said[name] = now
            words = "has expired" if until <= now else f"expires in {(until - now).days} days"
            log.warning("the certificate of listener %s %s, at %s", name, words, until.isoformat())


def _rules(settings: ListenerTls) -> tuple[Rule, ...]:
    try:
        return parse_rules(settings.principal_mapping_rules)
    except MappingError as error:
        raise ConfigError("ssl.principal.mapping.rules", settings.principal_mapping_rules, str(error)) from None


def _build(settings: ListenerTls) -> tuple[ServerTls, bytes]:
    """Return what a listener encrypts by, and its certificate (DER); raises ConfigError."""
    for store in (settings.keys, settings.trust):
        if "\0" in (store.location or ""):
            raise ConfigError(f"{store.setting}.location", ascii(store.location), "the path of a file, without NUL")
    return build_server_tls(settings)


def _stamp(settings: ListenerTls) -> _Stamp:
    """Return what shows that one of the files has changed; one that is not there has not."""
    return tuple(_stamps_of(store.location for store in (settings.keys, settings.trust) if store.location))


def _stamps_of(locations: Iterable[str | None]) -> Iterable[tuple[str, int, int]]:
    for location in locations:
        try:
            status = Path(location or "").stat()
        except (OSError, ValueError):  # A text with a NUL in it is no path: ValueError.
            continue
        yield location or "", status.st_mtime_ns, status.st_ino
