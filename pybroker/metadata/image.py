"""The metadata image: brokers, topics, configurations, features, producer ids, SCRAM users, ACLs, delegation tokens and
client quotas at one offset of the metadata log.

Owns the data types only. Every class is frozen, and a mapping is never written once it is in an image. Unchanged parts
are the same objects in the next image, so `is not` detects a changed topic or changed configurations. Must not know
records; `delta` makes one image from another.
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
"""Kafka's `ConfigResource.Type.BROKER`. The resource with the name "" is the cluster-wide default of brokers."""
BROKER_LOGGER_RESOURCE = 8
"""Kafka's `ConfigResource.Type.BROKER_LOGGER`. Logger levels belong to a process and are not in the metadata."""
CLIENT_METRICS_RESOURCE = 16
"""Kafka's `ConfigResource.Type.CLIENT_METRICS`: subscriptions to client metrics (KIP-714)."""
GROUP_RESOURCE = 32
"""Kafka's `ConfigResource.Type.GROUP`. The group need not exist."""


class ConfigResource(NamedTuple):
    """The owner of configurations: a topic, a broker, all brokers, a group, or a client metrics subscription."""

    type: int
    name: str


class BrokerRegistration(msgspec.Struct, frozen=True):
    """The registration of one broker (KIP-631)."""

    id: int
    incarnation_id: bytes
    """16 random bytes, chosen at each start of the broker's process."""
    epoch: int
    """Assigned at the registration. A request with another epoch is from an older incarnation."""
    listeners: Mapping[str, tuple[str, int]]
    """Advertised (host, port) by listener name."""
    security_protocols: Mapping[str, int]
    """Kafka's number of the security protocol by listener name."""
    rack: str | None = None
    fenced: bool = True
    """A fenced broker is no leader, and Metadata does not list it."""
    in_controlled_shutdown: bool = False
    log_dirs: tuple[bytes, ...] = ()
    features: Mapping[str, tuple[int, int]] = {}
    """Minimum and maximum supported level by feature."""


class ControllerRegistration(msgspec.Struct, frozen=True):
    """The registration of one controller (KIP-919)."""

    id: int
    incarnation_id: bytes
    """16 random bytes, chosen at each start of the controller's process."""
    listeners: Mapping[str, tuple[str, int]]
    """(host, port) by listener name."""
    security_protocols: Mapping[str, int]
    """Kafka's number of the security protocol by listener name."""
    features: Mapping[str, tuple[int, int]] = {}
    """Minimum and maximum supported level by feature."""


class ClusterImage(msgspec.Struct, frozen=True):
    """The registered brokers and controllers."""

    brokers: Mapping[int, BrokerRegistration] = {}
    controllers: Mapping[int, ControllerRegistration] = {}


class PartitionImage(msgspec.Struct, frozen=True, gc=False):
    """One partition's replicas and leader. Not tracked by the garbage collector, as it has no reference cycles."""

    leader: int
    """Broker id, or `NO_LEADER`."""
    leader_epoch: int
    """Incremented at every change of the leader."""
    partition_epoch: int
    """Incremented at every change of the partition."""
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[bytes, ...] = ()
    """Id of the log directory of each replica (KIP-858), in the order of `replicas`; zero if unknown."""
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    """1 after an unclean election, until the leader has recovered (KIP-704)."""
    eligible_leader_replicas: tuple[int, ...] = ()
    """Replicas outside the ISR that have all committed records: they may become leader without loss (KIP-966)."""
    last_known_elr: tuple[int, ...] = ()
    """The last known leader, while no replica is in sync (KIP-966)."""


class TopicImage(msgspec.Struct, frozen=True):
    """One topic. A topic created again with the same name has another id."""

    name: str
    topic_id: bytes
    partitions: Mapping[int, PartitionImage]
    """By index, in ascending order."""


class TopicsImage(msgspec.Struct, frozen=True):
    """All topics, by name and by id."""

    by_name: Mapping[str, TopicImage] = {}
    by_id: Mapping[bytes, TopicImage] = {}
    index: PartitionIndex = EMPTY_INDEX
    """The partitions by broker, derived from the topics (`build_index`)."""


_NO_CONFIGS: Mapping[str, str] = {}


class ConfigsImage(msgspec.Struct, frozen=True):
    """The configurations set by users, by resource. Defaults are not included."""

    by_resource: Mapping[ConfigResource, Mapping[str, str]] = {}

    def of(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Return the configurations of a resource: the same object as long as they do not change."""
        return self.by_resource.get(ConfigResource(resource_type, name), _NO_CONFIGS)

    def of_topic(self, name: str) -> Mapping[str, str]:
        """Return the topic's own configurations."""
        return self.of(TOPIC_RESOURCE, name)

    def of_group(self, name: str) -> Mapping[str, str]:
        """Return the group's own configurations."""
        return self.of(GROUP_RESOURCE, name)

    def of_groups(self) -> dict[str, Mapping[str, str]]:
        """Return the configurations by group, of groups with any."""
        return self._of_type(GROUP_RESOURCE)

    def of_client_metrics(self) -> dict[str, Mapping[str, str]]:
        """Return the client metrics subscriptions by name."""
        return self._of_type(CLIENT_METRICS_RESOURCE)

    def _of_type(self, resource_type: int) -> dict[str, Mapping[str, str]]:
        return {
            resource.name: configs for resource, configs in self.by_resource.items() if resource.type == resource_type
        }

    def of_broker(self, broker_id: int | None) -> Mapping[str, str]:
        """Return the dynamic configurations of a broker, or for None the cluster-wide defaults."""
        return self.of(BROKER_RESOURCE, "" if broker_id is None else str(broker_id))


class FeaturesImage(msgspec.Struct, frozen=True):
    """The finalized feature levels (KIP-584)."""

    levels: Mapping[str, int] = {}
    """By name. 0 is a feature that was removed, unlike a feature that the log never contained."""
    epoch: int = -1
    """Offset of the last batch that changed a level."""
    kraft_version: int = 0
    """The level of kraft.version (KIP-853), from control records: 1 if the log contains the voter set."""


class ProducerIdsImage(msgspec.Struct, frozen=True):
    """The start of the next block of producer ids (KIP-730)."""

    next_producer_id: int = 0


class ScramCredential(msgspec.Struct, frozen=True):
    """A SCRAM credential of a user (RFC 5802): sufficient to verify a password, but not to log in."""

    salt: bytes
    stored_key: bytes
    """Used by the broker to authenticate the client."""
    server_key: bytes
    """Used by the client to authenticate the broker."""
    iterations: int

    def __repr__(self) -> str:
        return "ScramCredential([hidden])"


class ScramImage(msgspec.Struct, frozen=True):
    """The SCRAM credentials of all users (KIP-554)."""

    by_mechanism: Mapping[int, Mapping[str, ScramCredential]] = {}
    """By Kafka's number of the mechanism, then by user. A mechanism without users is not included."""

    def of(self, mechanism: int) -> Mapping[str, ScramCredential]:
        """Return the credentials of a mechanism by user: the same object as long as they do not change."""
        return self.by_mechanism.get(mechanism, _NO_CREDENTIALS)


_NO_CREDENTIALS: Mapping[str, ScramCredential] = {}


class AccessControlEntry(NamedTuple):
    """A rule that allows or denies a principal an operation on resources (Kafka's StandardAcl)."""

    resource_type: int
    resource_name: str
    pattern_type: int
    """3 for a literal name, 4 for a prefix of names."""
    principal: str
    host: str
    """An address, or `*`."""
    operation: int
    permission_type: int
    """2 denies, 3 allows."""


class AclsImage(msgspec.Struct, frozen=True):
    """The access control entries by their 16-byte ids. No two entries are equal."""

    by_id: Mapping[bytes, AccessControlEntry] = {}


class DelegationToken(msgspec.Struct, frozen=True):
    """A delegation token: a temporary credential of its owner (KIP-48). Principals are strings such as `User:alice`."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    """Times are milliseconds since 1970."""
    expires_ms: int
    """Expiry time unless the token is renewed."""
    ends_ms: int
    """Maximum lifetime, which a renewal cannot exceed."""


class DelegationTokensImage(msgspec.Struct, frozen=True):
    """The delegation tokens by id. Their HMACs are not in the log."""

    by_id: PersistentMap[DelegationToken] = PersistentMap()
    owned: PersistentMap[int] = PersistentMap()
    """Number of tokens by owner, derived from the tokens (`tokens_delta`)."""


class MetadataImage(msgspec.Struct, frozen=True):
    """The metadata up to an offset of the metadata log."""

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
