"""Listeners: whether their ports are free, and whether clients can resolve and reach the advertised addresses.

Owns the checks of addresses from this machine, as clients use them. Must not know protocols above TCP.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import TYPE_CHECKING

from pybroker.cli.doctor.finding import FAIL, OK, WARN, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.cli.doctor.machine import Machine
    from pybroker.config.broker import BrokerConfig
    from pybroker.config.endpoint import Endpoint, Listener

_CONNECT_SECONDS = 3.0
_ANY = ("", "0.0.0.0", "::")


def check_addresses(config: BrokerConfig, machine: Machine, pid: int | None) -> Iterator[Finding]:
    """Check every listener; `pid` is the running broker of these settings, None where none runs."""
    for listener in config.endpoints:
        yield _check_port(listener.endpoint, machine, pid)
    for listener in config.broker_endpoints:
        yield _check_advertised(listener, is_running=pid is not None)


def _check_port(endpoint: Endpoint, machine: Machine, pid: int | None) -> Finding:
    check = f"port {endpoint.name}"
    if endpoint.port == 0:
        return Finding(OK, check, f"{endpoint}: any free port")
    family = socket.AF_INET6 if ":" in endpoint.host else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((endpoint.host, endpoint.port))
            trial.listen(1)
    except socket.gaierror as error:
        return Finding(
            FAIL, check, f"{endpoint}: {error.strerror}", "set listeners to a name that this machine resolves"
        )
    except OSError as error:
        return _not_bound(endpoint, check, error, machine, pid)
    return Finding(OK, check, f"{endpoint} is free")


def _not_bound(endpoint: Endpoint, check: str, error: OSError, machine: Machine, pid: int | None) -> Finding:
    if error.errno == errno.EADDRINUSE:
        holder = machine.listener_of(endpoint.port) or "another process"
        if pid is not None and holder.startswith(f"process {pid} "):
            return Finding(OK, check, f"{endpoint}: the broker is listening, {holder}")
        return Finding(FAIL, check, f"{endpoint}: {holder} uses the port", "stop it, or set listeners to another port")
    if error.errno == errno.EADDRNOTAVAIL:
        return Finding(
            FAIL, check, f"{endpoint}: this machine has no such address", "set listeners to an address of this machine"
        )
    if error.errno == errno.EACCES:
        return Finding(
            FAIL, check, f"{endpoint}: ports below 1024 require more privileges", "set listeners to a higher port"
        )
    return Finding(FAIL, check, f"{endpoint}: {error.strerror}", "set listeners to another address")


def _check_advertised(listener: Listener, *, is_running: bool) -> Finding:
    endpoint = listener.advertised or listener.endpoint
    check = f"address {endpoint.name}"
    if endpoint.host in _ANY:
        words = f"{endpoint.name} advertises the address that a client connected to; brokers get {socket.gethostname()}"
        return Finding(OK, check, words)
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        return Finding(
            FAIL,
            check,
            f"{endpoint}: {endpoint.host} is not resolved ({error})",
            "set advertised.listeners to a name that clients resolve, or add it to DNS",
        )
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    shown = f"{endpoint} resolves to {', '.join(addresses)}"
    is_loopback = all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in addresses)
    if is_loopback and listener.endpoint.host in _ANY:
        advice = "set advertised.listeners to the address that clients on other machines use"
        return Finding(WARN, check, f"{shown}: only clients on this machine can reach it", advice)
    if is_running:
        return _connected(endpoint, check, shown)
    if is_loopback or any(_is_here(address) for address in addresses):
        return Finding(OK, check, shown)
    advice = "check that a proxy or a forwarded port leads to this machine, or correct advertised.listeners"
    return Finding(WARN, check, f"{shown}: not an address of this machine", advice)


def _connected(endpoint: Endpoint, check: str, shown: str) -> Finding:
    try:
        socket.create_connection((endpoint.host, endpoint.port), _CONNECT_SECONDS).close()
    except OSError as error:
        advice = "correct advertised.listeners, or allow connections in firewalls and proxies"
        return Finding(FAIL, check, f"{shown}: no connection to port {endpoint.port} ({error})", advice)
    return Finding(OK, check, f"{shown}, and is reachable")


def _is_here(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.bind((address, 0))
    except OSError:
        return False
    return True
