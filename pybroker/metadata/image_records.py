"""Convert an image to records: the content of a snapshot of the metadata log.

Owns the order of the records, that of Kafka's `MetadataImage.write`: feature levels first, as they define the versions
of the others, then brokers, controllers, topics each with its partitions, configurations, client quotas, producer ids,
SCRAM users, access control entries, delegation tokens. Replaying them from an empty image restores the image. Must not
know files, offsets, batches or record versions. The records are generated one by one, so that the encoder can pause
between any two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.metadata.features import METADATA_VERSION
from pybroker.metadata.quotas import quota_values
from pybroker.protocol.messages.records.access_control_entry import AccessControlEntryRecord
from pybroker.protocol.messages.records.client_quota import ClientQuotaRecord, EntityData
from pybroker.protocol.messages.records.config import ConfigRecord
from pybroker.protocol.messages.records.delegation_token import DelegationTokenRecord
from pybroker.protocol.messages.records.feature_level import FeatureLevelRecord
from pybroker.protocol.messages.records.partition import PartitionRecord
from pybroker.protocol.messages.records.producer_ids import ProducerIdsRecord
from pybroker.protocol.messages.records.register_broker import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord
from pybroker.protocol.messages.records.register_controller import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
)
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pybroker.metadata.image import (
        AclsImage,
        BrokerRegistration,
        ClusterImage,
        ConfigsImage,
        ControllerRegistration,
        DelegationToken,
        FeaturesImage,
        MetadataImage,
        PartitionImage,
        ProducerIdsImage,
        ScramImage,
        TopicsImage,
    )
    from pybroker.metadata.quotas import ClientQuotasImage
    from pybroker.protocol.schema import Message

NO_BROKER = -1
"""The broker of the block of producer ids: not stored in a snapshot, as in Kafka."""


def image_records(image: MetadataImage) -> Iterator[Message]:
    """Yield the records of a whole image, feature levels first."""
    yield from feature_records(image.features)
    yield from state_records(image)


def feature_records(features: FeaturesImage) -> Iterator[FeatureLevelRecord]:
    """Yield the records of the feature levels: metadata.version first, the others by name."""
    for name in sorted(features.levels, key=lambda name: (name != METADATA_VERSION, name)):
        yield FeatureLevelRecord(name=name, feature_level=features.levels[name])


def state_records(image: MetadataImage) -> Iterator[Message]:
    """Yield all other records."""
    yield from _cluster_records(image.cluster)
    yield from _topic_records(image.topics)
    yield from _config_records(image.configs)
    yield from _quota_records(image.quotas)
    yield from _producer_id_records(image.producer_ids)
    yield from _scram_records(image.scram)
    yield from _acl_records(image.acls)
    for token in image.delegation_tokens.by_id.values():
        yield token_record(token)


def _cluster_records(cluster: ClusterImage) -> Iterator[Message]:
    for broker in cluster.brokers.values():
        yield _broker_record(broker)
    for controller in cluster.controllers.values():
        yield _controller_record(controller)


def _broker_record(broker: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker.id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=[
            BrokerEndpoint(name=name, host=host, port=port, security_protocol=broker.security_protocols[name])
            for name, (host, port) in broker.listeners.items()
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in broker.features.items()
        ],
        rack=broker.rack,
        fenced=broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_dirs),
    )


def _controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        end_points=[
            ControllerEndpoint(name=name, host=host, port=port, security_protocol=controller.security_protocols[name])
            for name, (host, port) in controller.listeners.items()
        ],
        features=[
            ControllerFeature(name=name, min_supported_version=lowest, max_supported_version=highest)
            for name, (lowest, highest) in controller.features.items()
        ],
    )


def _topic_records(topics: TopicsImage) -> Iterator[Message]:
    for topic in topics.by_id.values():
        yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
        for index, partition in topic.partitions.items():
            yield _partition_record(topic.topic_id, index, partition)


def _partition_record(topic_id: bytes, index: int, partition: PartitionImage) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        directories=list(partition.directories),
        # As in Kafka, which omits empty lists.
        eligible_leader_replicas=list(partition.eligible_leader_replicas) or None,
        last_known_elr=list(partition.last_known_elr) or None,
    )


def _config_records(configs: ConfigsImage) -> Iterator[ConfigRecord]:
    for resource, values in configs.by_resource.items():
        for name, value in values.items():
            yield ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)


def _quota_records(quotas: ClientQuotasImage) -> Iterator[ClientQuotaRecord]:
    for entity, key, value in quota_values(quotas):
        parts = [EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        yield ClientQuotaRecord(entity=parts, key=key, value=value)


def _producer_id_records(producer_ids: ProducerIdsImage) -> Iterator[ProducerIdsRecord]:
    # Ids begin at 0: no block is allocated yet.
    if producer_ids.next_producer_id > 0:
        yield ProducerIdsRecord(broker_id=NO_BROKER, broker_epoch=-1, next_producer_id=producer_ids.next_producer_id)


def _scram_records(scram: ScramImage) -> Iterator[UserScramCredentialRecord]:
    for mechanism, users in scram.by_mechanism.items():
        for name, credential in users.items():
            yield UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            )


def _acl_records(acls: AclsImage) -> Iterator[AccessControlEntryRecord]:
    for acl_id, entry in acls.by_id.items():
        yield AccessControlEntryRecord(id=acl_id, **entry._asdict())


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    """Return the record of a delegation token."""
    return DelegationTokenRecord(
        owner=token.owner,
        requester=token.requester,
        renewers=list(token.renewers),
        issue_timestamp=token.issued_ms,
        max_timestamp=token.ends_ms,
        expiration_timestamp=token.expires_ms,
        token_id=token.token_id,
    )
