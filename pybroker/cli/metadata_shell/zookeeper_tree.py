"""The image as the tree that Kafka kept in ZooKeeper: where each fact of it stands there, and in which JSON.

Owns the paths and the texts. A registered broker that is fenced is not among `/brokers/ids`: its session would be over.
The controller is elected by the quorum, which the image does not name: `/controller_epoch` is the epoch of the newest
record, and there is no `/controller`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pybroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.cli.metadata_shell.image_tree import Tree
    from pybroker.metadata.image import BrokerRegistration, MetadataImage, TopicImage

_DEFAULT = "<default>"
"""The name of what holds for all brokers."""


def zookeeper_tree(image: MetadataImage) -> Tree:
    """Return what is below the root."""
    reassigned = [
        {"topic": topic.name, "partition": index, "replicas": list(partition.replicas)}
        for topic in image.topics.by_name.values()
        for index, partition in topic.partitions.items()
        if partition.adding_replicas or partition.removing_replicas
    ]
    admin: Tree = {"delete_topics": {}}
    if reassigned:
        admin["reassign_partitions"] = _text({"version": 1, "partitions": reassigned})
    config: Tree = {kind: _configs(image, number) for kind, number in _CONFIGS.items()}
    brokers = image.cluster.brokers.values()
    return {
        "admin": admin,
        "brokers": {
            "ids": {str(broker.id): _broker(broker) for broker in brokers if not broker.fenced},
            "topics": {name: _topic(topic, image.epoch) for name, topic in image.topics.by_name.items()},
        },
        "config": {**config, "clients": {}, "users": {}, "changes": {}},
        "consumers": {},
        "controller_epoch": str(image.epoch),
        "isr_change_notification": {},
    }


_CONFIGS = {"topics": TOPIC_RESOURCE, "brokers": BROKER_RESOURCE}


def _configs(image: MetadataImage, kind: int) -> Tree:
    return {
        resource.name or _DEFAULT: _text({"version": 1, "config": dict(values)})
        for resource, values in image.configs.by_resource.items()
        if resource.type == kind
    }


def _broker(broker: BrokerRegistration) -> str:
    endpoints = [f"{name}://{host}:{port}" for name, (host, port) in broker.listeners.items()]
    host, port = next(iter(broker.listeners.values()), (None, -1))
    fields: dict[str, object] = {"endpoints": endpoints, "jmx_port": -1, "host": host, "port": port, "version": 5}
    if broker.rack is not None:
        fields["rack"] = broker.rack
    return _text(fields)


def _topic(topic: TopicImage, epoch: int) -> Tree:
    states: Tree = {}
    for index, partition in topic.partitions.items():
        state = {
            "controller_epoch": epoch,
            "leader": partition.leader,
            "version": 1,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr),
        }
        states[str(index)] = {"state": _text(state)}
    replicas = {str(index): list(partition.replicas) for index, partition in topic.partitions.items()}
    return {"": _text({"version": 1, "partitions": replicas}), "partitions": states}


def _text(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
