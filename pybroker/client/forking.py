"""Clients in a forked child: every use raises ForkedError, and no resource shared with the parent is touched.

Owns the list of the clients of this process. A child has copies of them without their threads, and shares their
sockets, descriptors and epoll sets with the parent. `os.fork` calls `_disown` in the child: each client gets a class
whose public attributes raise ForkedError, and is never freed, so that no destructor runs. Calls have no extra cost.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn
from weakref import WeakSet

from pybroker.client import native
from pybroker.client.errors import ForkedError

_clients: WeakSet[Any] = WeakSet()
_pid = os.getpid()
_SPECIAL = ("__enter__", "__aenter__", "__iter__", "__next__", "__aiter__", "__anext__")


def register(client: object) -> None:
    """Register a client of this process, so that it raises in a forked child.

    Its class may list usable names in `_in_child`.
    """
    _clients.add(client)


def registered() -> list[Any]:
    """Return the clients of this process that are alive."""
    while True:
        try:
            return list(_clients)
        except RuntimeError:  # Another thread has created a client meanwhile.
            continue


def _refuse(client: Any, *_arguments: object) -> NoReturn:
    kind = type(client).__name__
    raise ForkedError(
        f"this {kind} was created in process {type(client)._maker} and cannot be used after fork, in process "
        f"{os.getpid()}: create the {kind} in the child"
    )


def _get_attribute(client: Any, name: str) -> Any:
    if name.startswith("_") or name in getattr(type(client), "_in_child", ()):
        return object.__getattribute__(client, name)
    return _refuse(client)


def _leave(_client: object, _error: BaseException | None) -> None:
    """Do nothing at the end of a `with` block that the parent began."""


async def _leave_async(_client: object, _error: BaseException | None) -> None:
    """As `_leave`."""


def _disown() -> None:
    """In a forked child: make every client raise ForkedError."""
    global _pid
    clients, maker, _pid = registered(), _pid, os.getpid()
    _clients.clear()
    inherited = {
        "__slots__": (),
        "__getattribute__": _get_attribute,
        "_leave": _leave,
        "_leave_async": _leave_async,
        "_maker": maker,
    }
    for client in clients:
        kind: Any = type(client)
        special = {name: _refuse for name in _SPECIAL if hasattr(kind, name)}
        made: type = type(kind)(kind.__name__, (kind,), {**inherited, **special})
        client.__class__ = made
        native.keep_forever(client)


os.register_at_fork(after_in_child=_disown)
