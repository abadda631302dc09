"""The image as the tree that Kafka kept in ZooKeeper: where each fact of it stands there, and in which JSON.

Owns the paths and the texts. Credentials are hidden. A registered broker that is fenced is not among `/brokers/ids`:
its session would have expired. The quorum elects the controller, which the image does not contain: `/controller_epoch`
is the epoch of the newest record, and `/controller` is missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

from pybroker.cli.metadata_shell.image_tree import SCRAM_NAMES, double_text
from pybroker.cli.metadata_shell.shell import OWN_TEXT
from pybroker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE
from pybroker.metadata.quotas import CLIENT_ID, IP, USER
from pybroker.security.operations import (
    OPERATION_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    PatternType,
    name_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pybroker.cli.metadata_shell.image_tree import Tree
    from pybroker.metadata.image import BrokerRegistration, DelegationToken, MetadataImage, TopicImage

_DEFAULT = "<default>"
"""The name of the defaults for all brokers, users, clients or addresses."""
_HIDDEN = "salt=[hidden],stored_key=[hidden],server_key=[hidden],iterations={}"


def zookeeper_tree(image: MetadataImage) -> Tree:
    """Return the tree below the root."""
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
    tokens: Tree = {key: _token(token) for key, token in image.delegation_tokens.by_id.items()}
    brokers = image.cluster.brokers.values()
    return {
        "admin": admin,
        "brokers": {
            "ids": {str(broker.id): _broker(broker) for broker in brokers if not broker.fenced},
            "topics": {name: _topic(topic, image.epoch) for name, topic in image.topics.by_name.items()},
        },
        "config": {**config, **_entities(image), "changes": {}},
        "consumers": {},
        "delegation_token": {"token_changes": {}, "tokens": tokens},
        "kafka-acl": _acls(image, PatternType.LITERAL),
        "kafka-acl-changes": {},
        "kafka-acl-extended": {"prefixed": _acls(image, PatternType.PREFIXED)},
        "kafka-acl-extended-changes": {},
        "controller_epoch": str(image.epoch),
        "isr_change_notification": {},
    }


_CONFIGS = {"topics": TOPIC_RESOURCE, "brokers": BROKER_RESOURCE}


def _configs(image: MetadataImage, kind: int) -> Tree:
    return {
        resource.name or _DEFAULT: _config(values)
        for resource, values in image.configs.by_resource.items()
        if resource.type == kind
    }


def _entities(image: MetadataImage) -> Tree:
    """Return clients, users and addresses: their quotas, and the SCRAM mechanisms of users."""
    users: dict[str, dict[str, str]] = {}
    clients_of: dict[str, Tree] = {}
    trees: dict[str, Tree] = {CLIENT_ID: {}, IP: {}}
    for mechanism, credentials in image.scram.by_mechanism.items():
        for user, credential in credentials.items():
            users.setdefault(quote(user, safe=""), {})[SCRAM_NAMES[mechanism]] = _HIDDEN.format(credential.iterations)
    for entity, limits in image.quotas.by_entity.items():
        names = {kind: _DEFAULT if name is None else quote(name, safe="") for kind, name in entity}
        texts = {key: double_text(value) for key, value in limits.items()}
        if USER not in names:
            ((kind, name),) = names.items()
            trees[kind][name] = _config(texts)
        elif CLIENT_ID not in names:
            users.setdefault(names[USER], {}).update(texts)
        else:
            clients_of.setdefault(names[USER], {})[names[CLIENT_ID]] = _config(texts)
    both: Tree = {}
    for user in users.keys() | clients_of.keys():
        own: Tree = {OWN_TEXT: _config(users[user])} if user in users else {}
        both[user] = {**own, "clients": clients_of[user]} if user in clients_of else own
    return {"clients": trees[CLIENT_ID], "users": both, "ips": trees[IP]}


def _acls(image: MetadataImage, pattern: PatternType) -> Tree:
    """Return the entries of one pattern type: by resource type, then by name."""
    rules: dict[str, dict[str, list[dict[str, str]]]] = {}
    for entry in image.acls.by_id.values():
        if entry.pattern_type == pattern:
            rule = {
                "principal": entry.principal,
                "permissionType": _camel(name_of(PERMISSION_NAMES, entry.permission_type)),
                "operation": _camel(name_of(OPERATION_NAMES, entry.operation)),
                "host": entry.host,
            }
            kind = _camel(name_of(RESOURCE_NAMES, entry.resource_type))
            rules.setdefault(kind, {}).setdefault(entry.resource_name, []).append(rule)
    return {
        kind: {name: _text({"version": 1, "acls": some}) for name, some in by_name.items()}
        for kind, by_name in rules.items()
    }


def _camel(name: str) -> str:
    """Return a name in the notation of Kafka's ZooKeeper authorizer: TRANSACTIONAL_ID is TransactionalId."""
    return name.title().replace("_", "")


def _token(token: DelegationToken) -> str:
    return _text(
        {
            "version": 3,
            "owner": token.owner,
            "tokenRequester": token.requester,
            "renewers": list(token.renewers),
            "issueTimestamp": token.issued_ms,
            "maxTimestamp": token.ends_ms,
            "expiryTimestamp": token.expires_ms,
            "tokenId": token.token_id,
        }
    )


def _config(values: Mapping[str, str]) -> str:
    return _text({"version": 1, "config": dict(values)})


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
