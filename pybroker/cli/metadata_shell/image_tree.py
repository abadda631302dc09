"""The image as a tree: names to subtrees or to text, as kafka-metadata-shell shows it below `/image`.

Owns the nodes' names and texts, which are those of Kafka's image nodes, with four exceptions. Users' credentials are
hidden. A default entity of quotas has its type, so that two of them differ. The provenance has the offset of the
metadata log, where Kafka's has that of the snapshot's file, and no time, which the image lacks. A level of
`metadata.version` without a name is a number.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from pybroker import __version__
from pybroker.metadata.features import METADATA_VERSION
from pybroker.metadata.image import BROKER_RESOURCE, GROUP_RESOURCE, TOPIC_RESOURCE
from pybroker.metadata.metadata_versions import NAMES
from pybroker.security.operations import (
    OPERATION_NAMES,
    PATTERN_NAMES,
    PERMISSION_NAMES,
    RESOURCE_NAMES,
    name_of,
)
from pybroker.storage.log_dirs.meta_properties import id_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from pybroker.metadata.image import (
        AccessControlEntry,
        BrokerRegistration,
        ConfigResource,
        ControllerRegistration,
        DelegationToken,
        MetadataImage,
        PartitionImage,
        TopicImage,
    )
    from pybroker.metadata.quotas import QuotaEntity

Tree: TypeAlias = "dict[str, Tree | str]"

_RESOURCES = {TOPIC_RESOURCE: "TOPIC", BROKER_RESOURCE: "BROKER", GROUP_RESOURCE: "GROUP"}
_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
SCRAM_NAMES = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_SCRAM_TEXT = "ScramCredentialData(salt=[hidden], storedKey=[hidden], serverKey=[hidden], iterations=[hidden])"
_RECOVERY = ("RECOVERED", "RECOVERING")


def image_tree(image: MetadataImage) -> Tree:
    """Return the tree below `/image`."""
    level = image.features.levels.get(METADATA_VERSION)
    features: Tree = {"metadataVersion": f"Optional[{NAMES.get(level, level)}]" if level else "Optional.empty"}
    features.update(
        {f"finalized_{name}": str(value) for name, value in image.features.levels.items() if name != METADATA_VERSION}
    )
    return {
        "provenance": f"offset {image.offset}, epoch {image.epoch}",
        "features": features,
        "cluster": {
            "brokers": {str(broker.id): _broker_text(broker) for broker in image.cluster.brokers.values()},
            "controllers": {str(node.id): _controller_text(node) for node in image.cluster.controllers.values()},
        },
        "topics": {
            "byName": {name: _topic_tree(topic) for name, topic in image.topics.by_name.items()},
            "byId": {id_text(key): _topic_tree(topic) for key, topic in image.topics.by_id.items()},
        },
        "configs": {_resource_text(one): dict(values) for one, values in image.configs.by_resource.items()},
        "clientQuotas": {
            _entity_text(entity): {key: double_text(value) for key, value in limits.items()}
            for entity, limits in image.quotas.by_entity.items()
        },
        "producerIds": {"nextProducerId": str(image.producer_ids.next_producer_id)},
        "acls": {"byId": {id_text(key): _acl_text(entry) for key, entry in image.acls.by_id.items()}},
        "scram": {
            SCRAM_NAMES[mechanism]: dict.fromkeys(users, _SCRAM_TEXT)
            for mechanism, users in image.scram.by_mechanism.items()
        },
        "delegationToken": {key: _token_text(token) for key, token in image.delegation_tokens.by_id.items()},
    }


def local_tree() -> Tree:
    """Return the tree below `/local`."""
    return {"version": __version__}


def double_text(value: float) -> str:
    """Return a number as Java writes a double."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return str(value)
    if value in (float("inf"), float("-inf")):
        return str(value).replace("inf", "Infinity")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"


_QUOTA_TYPES = {"client-id": "clientId"}


def _entity_text(entity: QuotaEntity) -> str:
    """Return an entity's parts as `clientId(NAME)_user(NAME)`; the name of a default entity is empty."""
    parts = []
    for kind, name in entity:
        escaped = (name or "").replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        parts.append(f"{_QUOTA_TYPES.get(kind, kind)}({escaped})")
    return "_".join(parts)


def _resource_text(resource: ConfigResource) -> str:
    kind = _RESOURCES.get(resource.type, str(resource.type))
    return f"{kind}:{resource.name}" if resource.name else kind


def _acl_text(entry: AccessControlEntry) -> str:
    return (
        f"StandardAcl[resourceType={name_of(RESOURCE_NAMES, entry.resource_type)}, resourceName={entry.resource_name}, "
        f"patternType={name_of(PATTERN_NAMES, entry.pattern_type)}, principal={entry.principal}, host={entry.host}, "
        f"operation={name_of(OPERATION_NAMES, entry.operation)}, "
        f"permissionType={name_of(PERMISSION_NAMES, entry.permission_type)}]"
    )


def _token_text(token: DelegationToken) -> str:
    # Brackets and commas are those of Kafka's text.
    return (
        f"DelegationTokenDatatokenId={token.token_id}(owner={token.owner}(tokenRequester={token.requester}"
        f"(renewers={' '.join(token.renewers)}, issueTimestamp={token.issued_ms}, maxTimestamp={token.ends_ms}), "
        f"expiryTimestamp={token.expires_ms}"
    )


def _topic_tree(topic: TopicImage) -> Tree:
    tree: Tree = {"name": topic.name, "id": id_text(topic.topic_id)}
    tree.update({str(index): _partition_text(partition) for index, partition in topic.partitions.items()})
    return tree


def _partition_text(partition: PartitionImage) -> str:
    return (
        f"PartitionRegistration(replicas={_list(partition.replicas)}, "
        f"directories={_list(map(id_text, partition.directories))}, isr={_list(partition.isr)}, "
        f"removingReplicas={_list(partition.removing_replicas)}, addingReplicas={_list(partition.adding_replicas)}, "
        f"elr={_list(partition.eligible_leader_replicas)}, lastKnownElr={_list(partition.last_known_elr)}, "
        f"leader={partition.leader}, leaderRecoveryState={_RECOVERY[partition.leader_recovery_state]}, "
        f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
    )


def _broker_text(broker: BrokerRegistration) -> str:
    rack = "Optional.empty" if broker.rack is None else f"Optional[{broker.rack}]"
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, incarnationId={id_text(broker.incarnation_id)}, "
        f"listeners={_endpoints(broker)}, supportedFeatures={_features(broker.features)}, rack={rack}, "
        f"fenced={_java(broker.fenced)}, inControlledShutdown={_java(broker.in_controlled_shutdown)}, "
        f"isMigratingZkBroker=false, directories={_list(map(id_text, broker.log_dirs))}, cordonedDirectories=null)"
    )


def _controller_text(node: ControllerRegistration) -> str:
    return (
        f"ControllerRegistration(id={node.id}, incarnationId={id_text(node.incarnation_id)}, "
        f"listeners={_endpoints(node)}, supportedFeatures={_features(node.features)})"
    )


def _endpoints(node: BrokerRegistration | ControllerRegistration) -> str:
    return _list(
        f"Endpoint(listenerName='{name}', securityProtocol={_PROTOCOLS.get(node.security_protocols[name], '?')}, "
        f"host='{host}', port={port})"
        for name, (host, port) in node.listeners.items()
    )


def _features(features: Mapping[str, tuple[int, int]]) -> str:
    return f"{{{', '.join(f'{name}: {low}-{high}' for name, (low, high) in sorted(features.items()))}}}"


def _list(some: Iterable[object]) -> str:
    return f"[{', '.join(map(str, some))}]"


def _java(flag: bool) -> str:
    return "true" if flag else "false"
