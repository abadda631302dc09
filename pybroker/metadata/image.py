"""The metadata image: brokers, topics, configurations, features, producer ids, SCRAM users, ACLs, delegation tokens and
client quotas at one offset of the metadata log.

Owns the shapes alone. Every class is frozen, every mapping is never written after it is in an image, and what did not
change is the same object in the next image: `is not` distinguishes a changed topic, or changed configurations, from
others. Must not know records; `delta` makes one image from another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pybroker.metadata.partition_index import EMPTY_INDEX, PartitionIndex
from pybroker.metadata.persistent_map import PersistentMap
from pybroker.metadata.quotas import ClientQuotasImage

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_LEADER = -1

TOPIC_RESOURCE = 2
"""Kafka's `ConfigResource.Type.TOPIC`."""
BROKER_RESOURCE = 4
"""Kafka's `ConfigResource.Type.BROKER`; the resource named "" is the default of all brokers."""
BROKER_LOGGER_RESOURCE = 8
"""Kafka's `ConfigResource.Type.BROKER_LOGGER`; the levels of loggers are kept by each process, not in the metadata."""
CLIENT_METRICS_RESOURCE = 16
"""Kafka's `ConfigResource.Type.CLIENT_METRICS`: what clients are asked to push (KIP-714)."""
GROUP_RESOURCE = 32
"""Kafka's `ConfigResource.Type.GROUP`; the group need not exist."""


class ConfigResource(NamedTuple):
    """What configurations belong to: a topic, a broker, all brokers, a group, or a subscription to clients' metrics."""

    type: int
    name: str


class BrokerRegistration(msgspec.Struct, frozen=True):
    """One broker as it registered itself (KIP-631)."""

    id: int
    incarnation_id: bytes
    """Made anew at each start of the broker's process, 16 bytes."""
    epoch: int
    """Given to the broker at its registration; a request with another epoch comes from an older incarnation."""
    listeners: Mapping[str, tuple[str, int]]
    """Advertised (host, port) by listener name."""
    security_protocols: Mapping[str, int]
    """Kafka's number of the security protocol by listener name."""
    rack: str | None = None
    fenced: bool = True
    """A fenced broker leads nothing and is not shown to clients."""
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    features: Mapping[str, tuple[int, int]] = {}
    """Lowest and highest level that the broker supports, by feature."""


class ControllerRegistration(msgspec.Struct, frozen=True):
    """One controller as it registered itself (KIP-919)."""

    id: int
    incarnation_id: bytes
    """Made anew at each start of the controller's process, 16 bytes."""
    listeners: Mapping[str, tuple[str, int]]
    """(host, port) by listener name."""
    security_protocols: Mapping[str, int]
    """Kafka's number of the security protocol by listener name."""
    features: Mapping[str, tuple[int, int]] = {}
    """Lowest and highest level that the controller supports, by feature."""


class ClusterImage(msgspec.Struct, frozen=True):
    """The registered brokers and controllers."""

    brokers: Mapping[int, BrokerRegistration] = {}
    controllers: Mapping[int, ControllerRegistration] = {}


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition's replicas and leader. It is part of no reference cycle, so the garbage collector skips it."""

    leader: int
    """Broker id, `NO_LEADER` where there is none."""
    leader_epoch: int
    """Grows with every change of leader."""
    partition_epoch: int
    """Grows with every change of the partition."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    """Id of the log directory of each replica (KIP-858), in the order of `replicas`; zero where it is not known."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """1 after an unclean election, until the leader has recovered (KIP-704)."""
    eligible_leader_replicas: tuple[int, ...] = ()
    """Replicas that are not in sync and have all that is committed: they may lead without loss (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """Who had a leader's part last, while nobody is in sync (KIP-966)."""


class TopicImage(msgspec.Struct, frozen=True):
    """One topic. Another topic that later has the same name has another id."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    """By index, in ascending order."""


class TopicsImage(msgspec.Struct, frozen=True):
    """All topics, by name and by id."""

    by_name: Mapping[str, TopicImage] = {}
    by_id: Mapping[bytes, TopicImage] = {}
    index: PartitionIndex = EMPTY_INDEX
    """Which partitions a broker that comes or goes concerns; follows from the topics (`build_index`)."""


_NO_CONFIGS: Mapping[str, str] = {}


class ConfigsImage(msgspec.Struct, frozen=True):
    """The configurations that somebody set, by resource; what nobody set is not here."""

    by_resource: Mapping[ConfigResource, Mapping[str, str]] = {}

    def of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return what is set for a resource; the same object as long as nothing changes."""
        return self.by_resource.get(ConfigResource(resource_type, name), _NO_CONFIGS)

    def of_topic(self, name: str) -> Mapping[str, str]:
        """Return the topic's own configurations."""
        return self.of(TOPIC_RESOURCE, name)

    def of_group(self, name: str) -> Mapping[str, str]:
        """Return the group's own configurations."""
        return self.of(GROUP_RESOURCE, name)

    def of_groups(self) -> dict[str, Mapping[str, str]]:
        """Return the configurations of all groups that have any, by group."""
        return self._of_type(GROUP_RESOURCE)

    def of_client_metrics(self) -> dict[str, Mapping[str, str]]:
        """Return the subscriptions to clients' metrics, by name."""
        return self._of_type(CLIENT_METRICS_RESOURCE)

    def _of_type(self, resource_type: int) -> dict[str, Mapping[str, str]]:
        return {
            resource.name: configs for resource, configs in self.by_resource.items() if resource.type == resource_type
        }

    def of_broker(self, broker_id: int | None) -> Mapping[str, str]:
        """Return the dynamic configurations of one broker, or with None the default of all."""
        return self.of(BROKER_RESOURCE, "" if broker_id is None else str(broker_id))


class FeaturesImage(msgspec.Struct, frozen=True):
    """The finalized feature levels (KIP-584)."""

    levels: Mapping[str, int] = {}
    """By name; 0 is a feature that somebody has removed, which is not one that the log never named."""
    epoch: int = -1
    """Offset of the record that changed a level last; grows with every change."""
    kraft_version: int = 0
    """The level of kraft.version (KIP-853), of which control records are: 1 where the log names the voters."""


class ProducerIdsImage(msgspec.Struct, frozen=True):
    """Where the next block of producer ids begins (KIP-730)."""

    next_producer_id: int = 0


class ScramCredential(msgspec.Struct, frozen=True):
    """What a broker keeps of a user's password (RFC 5802): enough to check it, not to log in with."""

    salt: bytes
    stored_key: bytes
    """What the broker checks the client by."""
    server_key: bytes
    """What the client checks the broker by."""
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


class ScramImage(msgspec.Struct, frozen=True):
    """The users that can log in by SCRAM (KIP-554)."""

    by_mechanism: Mapping[int, Mapping[str, ScramCredential]] = {}
    """By Kafka's number of the mechanism, then by user; a mechanism that nobody has is not here."""

    def of(self, mechanism: int) -> Mapping[str, ScramCredential]:
        """Return the users of a mechanism; the same object as long as nothing of it changes."""
        return self.by_mechanism.get(mechanism, _NO_CREDENTIALS)


_NO_CREDENTIALS: Mapping[str, ScramCredential] = {}


class AccessControlEntry(NamedTuple):
    """A rule: who may do, or may not do, what to which resources (Kafka's StandardAcl)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    """3 for a literal name, 4 for what names begin with."""
    principal: str
    host: str
    """An address, or `*`."""
    operation: int
    permission_type: int
    """2 denies, 3 allows."""


class AclsImage(msgspec.Struct, frozen=True):
    """The access control entries, by their ids of 16 bytes. Entries of two ids differ."""

    by_id: Mapping[bytes, AccessControlEntry] = {}


class DelegationToken(msgspec.Struct, frozen=True):
    """A token that stands for a user's password for a while (KIP-48). Principals are texts: `User:alice`."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    """Times are milliseconds since 1970."""
    expires_ms: int
    """When it ends unless it is renewed."""
    ends_ms: int
    """When it ends for good."""


class DelegationTokensImage(msgspec.Struct, frozen=True):
    """The delegation tokens, by id. What they are proved by is not in the log."""

    by_id: PersistentMap[DelegationToken] = PersistentMap()
    owned: PersistentMap[int] = PersistentMap()
    """How many tokens each owner has; follows from the tokens (`tokens_delta`)."""


class MetadataImage(msgspec.Struct, frozen=True):
    """Everything the metadata log says up to an offset."""

    offset: int = -1
    """Offset of the last record in the image; -1 before the first."""
    epoch: int = -1
    """Leader epoch of that record."""
    cluster: ClusterImage = ClusterImage()
    topics: TopicsImage = TopicsImage()
    configs: ConfigsImage = ConfigsImage()
    features: FeaturesImage = FeaturesImage()
    producer_ids: ProducerIdsImage = ProducerIdsImage()
    scram: ScramImage = ScramImage()
    acls: AclsImage = AclsImage()
    delegation_tokens: DelegationTokensImage = DelegationTokensImage()
    quotas: ClientQuotasImage = ClientQuotasImage()


EMPTY_IMAGE = MetadataImage()
