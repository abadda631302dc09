"""The loader shows records only when they are published, and calls every publisher."""

from __future__ import annotations

from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.metadata.loader import Loader
from pybroker.protocol.messages.records.topic import TopicRecord


class Audience:
    def __init__(self) -> None:
        self.published: list[tuple[list[bytes], MetadataImage]] = []

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.published.append((delta.topics.created, image))


def test_batches_are_published_together() -> None:
    first, second = Audience(), Audience()
    loader = Loader([first, second])
    loader.load([TopicRecord(name="a", topic_id=b"a" * 16)], 3, 1)
    loader.load([TopicRecord(name="b", topic_id=b"b" * 16)], 4, 2)
    assert loader.image is EMPTY_IMAGE
    assert list(loader.peek().topics.by_name) == ["a", "b"]
    assert loader.image is EMPTY_IMAGE
    image = loader.publish()
    assert image is loader.image
    assert (image.offset, image.epoch, list(image.topics.by_name)) == (4, 2, ["a", "b"])
    assert first.published == second.published == [([b"a" * 16, b"b" * 16], image)]


def test_publishing_nothing_calls_no_publisher() -> None:
    audience = Audience()
    loader = Loader([audience])
    assert loader.publish() is EMPTY_IMAGE
    assert audience.published == []


def test_a_batch_without_records_still_moves_the_offset() -> None:
    loader = Loader()
    loader.load([], 9, 4)
    assert (loader.publish().offset, loader.image.topics is EMPTY_IMAGE.topics) == (9, True)
