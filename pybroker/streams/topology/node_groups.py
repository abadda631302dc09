"""Which nodes belong to one subtopology: those that records or stores connect (`QuickUnion`)."""

from __future__ import annotations

from collections.abc import Iterable


class NodeGroups:
    """Disjoint sets of node names."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}
        """The parent of each node. A node that is its own parent is the root of its group."""

    def add(self, name: str) -> None:
        """Add a node as a group of its own."""
        self._parent[name] = name

    def root(self, name: str) -> str:
        """Return the node that stands for the group of `name`."""
        while (parent := self._parent[name]) != name:
            self._parent[name] = self._parent[parent]
            name = parent
        return name

    def unite(self, name: str, others: Iterable[str]) -> None:
        """Make one group of the groups of these nodes."""
        for other in others:
            self._parent[self.root(other)] = self.root(name)

    def in_order(self, names: Iterable[str]) -> list[list[str]]:
        """Return the groups of these nodes, each in the given order, ordered by their first node."""
        groups: dict[str, list[str]] = {}
        for name in names:
            groups.setdefault(self.root(name), []).append(name)
        return list(groups.values())
