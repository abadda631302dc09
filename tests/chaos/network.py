"""A network of brokers: a namespace for each, a router between them, and rules that drop packets one way.

Owns namespaces and interfaces from `begin` to `end`. Packets that are dropped are dropped by the router, silently, so
that neither end of a connection learns of it from its own system. Needs root. Must not know what the nodes do.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

CLIENTS = 0
"""The number of the side where this process is."""


class NetworkError(Exception):
    """A command of iproute2 failed; the text has it and what it said."""


class Network:
    """Nodes 1 to `nodes`, each in a namespace with an address of its own. Side 0 is the system that runs the tests."""

    def __init__(self, nodes: int) -> None:
        self._nodes = range(1, nodes + 1)
        self._name = f"pb{os.getpid() % 100_000}"
        self._prefix = f"10.{64 + os.getpid() % 128}"
        self._dropped: set[tuple[int, int]] = set()

    def begin(self) -> None:
        """Make it; raises NetworkError and leaves nothing."""
        try:
            _run("ip", "netns", "add", self._router)
            _run("ip", "netns", "exec", self._router, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
            for side in (CLIENTS, *self._nodes):
                self._connect(side)
        except NetworkError:
            self.end()
            raise

    def end(self) -> None:
        """Remove it. What runs in its namespaces has been ended."""
        # The kernel removes what is in a namespace some time after it: the next network has an interface of this name.
        subprocess.run(["ip", "link", "del", self._interface(CLIENTS)], capture_output=True, check=False)
        for name in [self._router, *map(self._namespace, self._nodes)]:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def address(self, side: int) -> str:
        """Return the address of a node, or of this process."""
        return f"{self._prefix}.{side}.2"

    def wrapper(self, node: int) -> tuple[str, ...]:
        """Return the program that runs another one as a node."""
        return ("ip", "netns", "exec", self._namespace(node))

    def drop(self, source: int, target: int) -> None:
        """Drop all packets from one side to another from now on."""
        if (source, target) not in self._dropped:
            self._dropped.add((source, target))
            self._rule("add", source, target)

    def isolate(self, node: int, others: Iterable[int]) -> None:
        """Drop all packets between a node and others."""
        for other in others:
            self.drop(node, other)
            self.drop(other, node)

    def mend(self) -> None:
        """Drop no more packets."""
        for source, target in sorted(self._dropped):
            self._rule("del", source, target)
        self._dropped.clear()

    @property
    def _router(self) -> str:
        return f"{self._name}r"

    def _namespace(self, node: int) -> str:
        return f"{self._name}n{node}"

    def _interface(self, side: int) -> str:
        return f"{self._name}s{side}"

    def _rule(self, change: str, source: int, target: int) -> None:
        between = ("from", self.address(source), "to", self.address(target), "blackhole")
        _run("ip", "-n", self._router, "rule", change, *between)

    def _connect(self, side: int) -> None:
        """Make a side's namespace, where it has one, and its interfaces to the router."""
        near, far = self._interface(side), f"{self._name}r{side}"
        namespace: tuple[str, ...] = ()
        if side != CLIENTS:
            _run("ip", "netns", "add", self._namespace(side))
            namespace = ("-n", self._namespace(side))
            _run("ip", *namespace, "link", "set", "lo", "up")
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self._router)
        if namespace:
            _run("ip", "link", "set", near, "netns", self._namespace(side))
        _run("ip", *namespace, "addr", "add", f"{self.address(side)}/24", "dev", near)
        _run("ip", *namespace, "link", "set", near, "up")
        gateway = f"{self._prefix}.{side}.1"
        _run("ip", "-n", self._router, "addr", "add", f"{gateway}/24", "dev", far)
        _run("ip", "-n", self._router, "link", "set", far, "up")
        _run("ip", *namespace, "route", "add", f"{self._prefix}.0.0/16", "via", gateway)


def _run(*words: str) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NetworkError(f"{words[0]} is not installed (Debian: apt-get install iproute2)") from error
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(words)}: {done.stderr.strip()}")
