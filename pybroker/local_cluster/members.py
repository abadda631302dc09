"""Waits until every broker of a local cluster knows the others.

A broker is ready when its own registration is unfenced. The others learn about the last broker a little later, and a
client that queries one of them before gets a smaller cluster.
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
    """Wait until metadata of every node contains all of `nodes`. Raises NodeFailedError for the first without.

    `client` has the settings of a client of the cluster.
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
    """Return the brokers in a node's metadata, or the error."""
    # A new client each time: one that knows other brokers queries any of them.
    try:
        with Admin(node.address, client) as admin:
            return {broker.node_id for broker in admin.describe_cluster().brokers}, None
    except (BrokerError, ClientError) as error:
        return set(), error
