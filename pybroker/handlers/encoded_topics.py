"""A cache of topics encoded for Metadata responses: each state of a topic is encoded once.

Owns the bytes of each topic by response version and authorized operations, and the limit of the cache. A topic that did
not change is the same object in the next image, so its bytes stay. The offline replicas depend on the brokers, so a
change of the brokers drops all topics. The caller describes a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pybroker.metadata.image import EMPTY_IMAGE
from pybroker.protocol.codec import encode_element
from pybroker.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from pybroker.machine.slices import Sliced
    from pybroker.metadata.image import ClusterImage, MetadataImage, TopicImage, TopicsImage

    Describe = Callable[[TopicImage], MetadataResponseTopic]

MAX_BYTES = 32 * 1024 * 1024
"""Maximum bytes of cached topics. If they are exceeded, all are dropped and encoded again on demand."""
_OF_AN_ENTRY = 200
"""Overhead of a cached topic in bytes."""
FIRST_VERSION_WITH_OPERATIONS, LAST_VERSION_WITH_CLUSTER_OPERATIONS = 8, 10
"""Authorized operations. Later versions have those of topics only, and DescribeCluster the cluster's (KIP-700)."""
_AT_ONCE = 64
"""Number of topics looked up between two yields."""


class Form(NamedTuple):
    """The form of a topic's description. Equal forms have equal bytes."""

    version: int
    operations: int
    """The authorized operations in each topic's description."""
    reachable: tuple[int, ...] = ()
    """The brokers that the client can reach, if the description depends on them."""


def encode_topic(topic: MetadataResponseTopic, version: int) -> bytes:
    """Encode a topic as it stands in a response of that version."""
    return encode_element(MetadataResponse, topic, version)


class EncodedTopics:
    """The cache of encoded topics of one broker. Used from one event loop."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._cluster: ClusterImage = EMPTY_IMAGE.cluster
        # By form and topic id: the topic image and its bytes.
        self._topics: dict[Form, dict[bytes, tuple[TopicImage, bytes]]] = {}
        # By form: all topics of an image and their bytes. Invariant: the bytes are those of `_topics`.
        self._all: dict[Form, tuple[TopicsImage, list[bytes]]] = {}
        self.bytes = 0
        """Approximate size of the cache in bytes."""

    def lookup(self, form: Form, image: MetadataImage, describe: Describe) -> Callable[[TopicImage], bytes]:
        """Return a function that returns a topic's bytes. `describe` makes the struct of a topic that is not cached."""
        if image.cluster is not self._cluster:
            self._drop()
            self._cluster = image.cluster
        version = form.version
        kept = self._topics.setdefault(form, {})
        self._forget_removed(form, image.topics)

        def encoded(topic: TopicImage) -> bytes:
            entry = kept.get(topic.topic_id)
            if entry is not None and entry[0] is topic:
                return entry[1]
            data = encode_topic(describe(topic), version)
            if self._topics.get(form) is kept:  # The cache was not dropped meanwhile.
                if entry is not None:
                    self.bytes -= len(entry[1]) + _OF_AN_ENTRY
                kept[topic.topic_id] = topic, data
                self.bytes += len(data) + _OF_AN_ENTRY
                if self.bytes > self._max_bytes:
                    self._drop()
            return data

        return encoded

    def all_of(self, form: Form, image: MetadataImage, describe: Describe) -> Sliced[list[bytes]]:
        """Return the bytes of all topics of `image`, in its order. The list must not be modified."""
        encoded = self.lookup(form, image, describe)
        known = self._all.get(form)
        if known is not None and known[0] is image.topics:
            return known[1]
        found = []
        for number, topic in enumerate(image.topics.by_name.values()):
            if number % _AT_ONCE == 0:
                yield
            found.append(encoded(topic))
        # A change of the brokers may have dropped the cache during a yield.
        if image.cluster is self._cluster and form in self._topics:
            self._all[form] = image.topics, found
        return found

    def _forget_removed(self, form: Form, topics: TopicsImage) -> None:
        """Drop deleted topics, if they are more than the existing ones."""
        kept = self._topics.get(form, {})
        if len(kept) > 2 * len(topics.by_id) + _AT_ONCE:
            for topic_id in [topic_id for topic_id in kept if topic_id not in topics.by_id]:
                self.bytes -= len(kept.pop(topic_id)[1]) + _OF_AN_ENTRY

    def _drop(self) -> None:
        self._topics.clear()
        self._all.clear()
        self.bytes = 0
