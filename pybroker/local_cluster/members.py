"""When every broker of a local cluster knows the others.

Owns the wait for it. A broker is ready when it knows itself at work; that the last one is at work reaches the others
a little later, and a client that asks one of them in between sees a smaller cluster.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pybroker.client.administration.admin import Admin
from pybroker.client.errors import BrokerError, ClientError
from pybroker.local_cluster.process import NodeFailedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pybroker.local_cluster.layout import NodeLayout

_POLL_S = 0.02


def wait_members(nodes: Sequence[NodeLayout], client: Mapping[str, object], within_s: float) -> None:
    """Wait until every node names all of `nodes` to clients; raises NodeFailedError for the first that does not.

    `client` has the settings by which a client gets in.
    """
    deadline = time.monotonic() + within_s
    expected = {node.node_id for node in nodes}
    for node in nodes:
        while True:
            named, failure = _named_by(node, client)
            if expected <= named:
                break
            if time.monotonic() > deadline:
                names = ", ".join(map(str, sorted(expected - named)))
                why = "" if failure is None else f": {failure}"
                raise NodeFailedError(f"broker {node.node_id} does not know broker {names} after {within_s:g} s{why}")
            time.sleep(_POLL_S)


def _named_by(node: NodeLayout, client: Mapping[str, object]) -> tuple[set[int], Exception | None]:
    """Return the brokers that a node names, or why it names none."""
    # A client of its own each time: one that knows other brokers asks any of them.
    try:
        with Admin(node.address, client) as admin:
            return {broker.node_id for broker in admin.describe_cluster().brokers}, None
    except (BrokerError, ClientError) as error:
        return set(), error
