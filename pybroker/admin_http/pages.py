"""The admin listener's response to each path.

Owns the paths. A page is a status and the chunks of a text, which are generated while they are sent. Must not know
sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pybroker.metrics.exposition import CLASSIC_CONTENT_TYPE, CONTENT_TYPE, render, wants_classic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pybroker.metrics.metric import Sample

SERVED_METHODS = ("GET", "HEAD")
"""Allowed methods; HEAD gets a status only."""
_PLAIN = "text/plain; charset=utf-8"


class Page(msgspec.Struct, frozen=True):
    """A response."""

    status: int
    content_type: str
    pieces: Iterable[str]
    is_heavy: bool = False
    """Whether generating it takes time and memory: few such pages are generated at a time."""


class Pages:
    """The pages of one node; used from the admin listener's thread."""

    def __init__(
        self,
        families: Callable[[], Iterator[tuple[str, Iterable[Sample]]]],
        not_ready: Callable[[], str | None],
    ) -> None:
        """`families` reads the current metrics; `not_ready` returns why the node is not ready, None where it is."""
        self._families = families
        self._not_ready = not_ready

    def find(self, method: str, path: str, accept: str = "") -> Page:
        """Return the response to a request; `accept` is its Accept header, used by /metrics only."""
        if method not in SERVED_METHODS:
            return Page(405, _PLAIN, [f"{method[:100]} is not served; {' and '.join(SERVED_METHODS)} are\n"])
        if path.startswith("http://"):
            # The absolute form (RFC 9112, 3.2.2).
            path = "/" + path.removeprefix("http://").partition("/")[2]
        path = path.partition("?")[0]
        if path == "/metrics":
            classic = wants_classic(accept)
            content_type = CLASSIC_CONTENT_TYPE if classic else CONTENT_TYPE
            return Page(200, content_type, render(self._families(), classic=classic), is_heavy=True)
        if path == "/healthz":
            return Page(200, _PLAIN, ["the process is alive\n"])
        if path == "/readyz":
            why = self._not_ready()
            return Page(200, _PLAIN, ["ready\n"]) if why is None else Page(503, _PLAIN, [f"not ready: {why}\n"])
        return Page(404, _PLAIN, [f"{path[:100]} is not here; /metrics, /healthz and /readyz are\n"])
