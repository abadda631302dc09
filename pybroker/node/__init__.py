"""The composition root: builds all parts of a node and connects them.

Owns the order in which parts are built, and their dependencies. Must not contain behaviour of a part. No request passes
through this package.

    node               Node: its start and its stop, by the roles that it has
    foundation         what both roles stand on: directories, identity, settings in force, failures
    controller_part    the controller: its voter, and the listeners of controllers
    observer_part      in its place in a node that is a broker alone: a follower of the quorum's log
    snapshot_policy    when either makes snapshots
    controller_access  the way to the active controller, wherever it is
    listening          the listeners of clients, their certificates and limits
    membership         the broker's registration and heartbeats
    replicas           its logs, and what follows the metadata with them
    coordinators       of groups and of transactions
    broker_part        the broker, of these stages; none is changed once it is built
    serving            the last steps of its start, to a pipeline that has begun
    measuring          the metrics that each part registers where it is built
"""

from pybroker.node.node import Node as Node
from pybroker.node.node import NodeError as NodeError
