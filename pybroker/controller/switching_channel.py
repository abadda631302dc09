"""The controller as a node reaches it: its own while it leads the quorum, another's otherwise.

Owns the choice of the channel for each request. Must not know the requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pybroker.controller.errors import NotControllerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.controller.forwarding_channel import ForwardingChannel
    from pybroker.controller.local_channel import LocalChannel


class SwitchingChannel:
    """The channel to the active controller. Used from one loop."""

    def __init__(
        self,
        local: LocalChannel | None,
        remote: ForwardingChannel | None,
        leader_id: Callable[[], int],
        leads: Callable[[], bool],
    ) -> None:
        """`local` is None for a node without a controller, `remote` for a cluster of a single node.

        `leads` returns whether this node's controller is the active one.
        """
        self._local = local
        self._remote = remote
        self._leader_id = leader_id
        self._leads = leads

    @property
    def leader_id(self) -> int:
        """Node id of the quorum's leader as far as this node knows it, -1 for none."""
        return self._leader_id()

    def own(self) -> LocalChannel:
        """Return the channel to this node's controller; raises `NotControllerError` while it is not the active one.

        Client requests use this channel. On other nodes `pybroker/net/forwarding.py` forwards them unchanged.
        """
        if self._local is None or not self._leads():
            raise NotControllerError("this node does not lead the metadata quorum")
        return self._local

    def active(self) -> LocalChannel | ForwardingChannel:
        """Return the channel for one request of this node itself to the active controller.

        Its coroutines raise `ControllerTimeoutError` if a controller in another process does not respond.
        """
        if self._remote is None:
            return self.own()
        if self._local is None or not self._leads():
            return self._remote
        return cast("LocalChannel", _Resigning(self._local, self._remote))


class _Resigning:
    """This node's own channel; if its controller resigns during a request, the request is sent to the next one."""

    def __init__(self, local: LocalChannel, remote: ForwardingChannel) -> None:
        self._local = local
        self._remote = remote

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        async def send(*arguments: object, **keywords: object) -> object:
            try:
                return await getattr(self._local, name)(*arguments, **keywords)
            except NotControllerError:  # another was elected meanwhile
                return await getattr(self._remote, name)(*arguments, **keywords)

        return send
