"""The servers that a client may connect to, in order: bootstrap servers, and nodes of metadata responses.

Owns the known addresses and their failures, and when the client uses its bootstrap servers again (KIP-899,
KIP-1102). Opens no connection; time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pybroker.client.settings import ConnectionSettings


class ServerList:
    """The addresses (`host:port`) of one client's cluster."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._bootstrap = [server.strip() for server in settings.bootstrap_servers.split(",") if server.strip()]
        self._rebootstraps = settings.metadata_recovery_strategy == "rebootstrap"
        self._trigger_s = settings.metadata_recovery_rebootstrap_trigger_ms / 1000
        self._by_node: dict[int, str] = {}
        self._failures: dict[str, int] = {}
        """Consecutive failures of connections, by server."""
        self._wanted_since: float | None = None
        """The time since which metadata requests have failed, in seconds."""

    def __contains__(self, node_id: object) -> bool:
        return node_id in self._by_node

    def __getitem__(self, node_id: int) -> str:
        return self._by_node[node_id]

    def node_at(self, server: str) -> int:
        """Return the id of the node at an address, -1 for one that no response has named."""
        return next((node_id for node_id, known in self._by_node.items() if known == server), -1)

    def learn(self, servers: Mapping[int, str]) -> None:
        """Set the addresses of all nodes from a metadata response. A response without nodes changes nothing."""
        self._by_node = dict(servers) or self._by_node
        self._wanted_since = None

    def add(self, node_id: int, server: str) -> None:
        """Set the address of one node."""
        self._by_node[node_id] = server

    def connected(self, server: str) -> None:
        """Record that a connection was opened."""
        self._failures.pop(server, None)

    def failed(self, server: str) -> None:
        """Record that a connection could not be opened, or has ended."""
        self._failures[server] = self._failures.get(server, 0) + 1

    def in_order(self, open_: Collection[str], silent: Collection[str]) -> list[str]:
        """Return the servers that a request to any node may be sent to, the best first.

        `open_` are connected servers, `silent` those of them with an overdue response, which come last. The other
        servers are sorted by their failures. Bootstrap servers are included unless `metadata.recovery.strategy=none`
        and other nodes are known.
        """
        known = list(dict.fromkeys(self._by_node.values()))
        if self._rebootstraps or not known:
            known += self._bootstrap
        responding = [server for server in dict.fromkeys([*open_, *known]) if server not in silent]
        responding.sort(key=lambda server: self._failures.get(server, 0))
        return [*responding, *dict.fromkeys(silent)]

    def is_rebootstrap_due(self, now: float) -> bool:
        """Whether metadata requests have failed for `metadata.recovery.rebootstrap.trigger.ms`. Call it before one."""
        if self._wanted_since is None:
            self._wanted_since = now
        return self._rebootstraps and now - self._wanted_since >= self._trigger_s

    def rebootstrap(self) -> bool:
        """Discard every known node; false where the settings forbid it."""
        if not self._rebootstraps:
            return False
        self._by_node, self._failures, self._wanted_since = {}, {}, None
        return True
