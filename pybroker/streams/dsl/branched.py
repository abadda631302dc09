"""Splitting a stream into branches (KIP-418). Generic in the class of streams, which `streams.py` gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, Unpack

from pybroker.streams.dsl import stateless
from pybroker.streams.dsl.graph import ProcessorGraphNode
from pybroker.streams.dsl.options import Branched, checked
from pybroker.streams.dsl.origin import Origin
from pybroker.streams.errors import TopologyError
from pybroker.streams.operators.stateless import StreamBranch

S = TypeVar("S")


class BranchedKStream(Generic[S]):
    """A stream that is split. Each record goes to the first branch whose predicate is true (`BranchedKStream`)."""

    def __init__(self, origin: Origin, name: str | None, wrap: Callable[[Origin], S]) -> None:
        self._origin = origin
        self._wrap = wrap
        self._name = origin.graph.name_or_new(name, "KSTREAM-BRANCH-")
        self._predicates: list[Callable[[Any, Any], bool]] = []
        self._children: list[str] = []
        self._branches: dict[str, S] = {}
        self._closed = False
        self._node = ProcessorGraphNode(self._name, StreamBranch(self._predicates, self._children))
        origin.graph.add(self._node, origin.node)

    def branch(self, predicate: Callable[[Any, Any], bool], **options: Unpack[Branched]) -> BranchedKStream[S]:
        """Add a branch for records that no earlier branch has taken and for which the predicate is true."""
        self._predicates.append(predicate)
        self._add(len(self._predicates), options)
        return self

    def default_branch(self, **options: Unpack[Branched]) -> dict[str, S]:
        """Add a branch for the remaining records, and return all branches by name."""
        self._add(0, options)
        self._closed = True
        return self._branches

    def no_default_branch(self) -> dict[str, S]:
        """Drop the remaining records, and return all branches by name."""
        self._closed = True
        return self._branches

    def _add(self, number: int, options: Branched) -> None:
        if self._closed:
            raise TopologyError(f"stream {self._name} has its default branch already: add branches before it")
        chosen = checked(options, Branched, "branch")
        name = f"{self._name}{chosen.get('name', number)}"
        self._children.append(name)
        stream = self._wrap(stateless.branch(self._origin, self._node, name))
        if "with_function" in chosen:
            result = chosen["with_function"](stream)
            if result is not None:
                self._branches[name] = result
        elif "with_consumer" in chosen:
            chosen["with_consumer"](stream)
        else:
            self._branches[name] = stream
