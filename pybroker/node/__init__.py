"""The composition root: builds all parts of a node and connects them.

Owns the order in which parts are built, and their dependencies. Must not contain behaviour of a part. No request passes
through this package.

    node               Node: its start and stop, with its roles
    foundation         the parts that both roles share: directories, identity, settings in force, failures
    controller_part    the controller: its voter, and the controller listeners
    observer_part      instead of it in a node without that role: an observer of the quorum's log
    snapshot_policy    when both make snapshots
    controller_access  access to the active controller, in this process or elsewhere
    listening          the broker listeners, their certificates and limits
    membership         the broker's registration and heartbeats
    replicas           its logs, and their metadata publisher
    coordinators       the group and the transaction coordinator
    broker_part        the broker, made of these stages; none is changed once it is built
    serving            the last steps of its start, up to a started pipeline
    measuring          the metrics that the parts register
"""

from pybroker.node.node import Node as Node
from pybroker.node.node import NodeError as NodeError
