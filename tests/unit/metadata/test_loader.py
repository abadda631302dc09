"""The loader shows records only when they are published, and calls every publisher."""

from __future__ import annotations

import pytest

from pybroker.metadata.delta import MetadataDelta
from pybroker.metadata.errors import RecordError
from pybroker.metadata.image import EMPTY_IMAGE, MetadataImage
from pybroker.metadata.loader import Loader
from pybroker.protocol.messages.records.abort_transaction import AbortTransactionRecord
from pybroker.protocol.messages.records.begin_transaction import BeginTransactionRecord
from pybroker.protocol.messages.records.end_transaction import EndTransactionRecord
from pybroker.protocol.messages.records.topic import TopicRecord
from pybroker.protocol.schema import Message


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


def test_a_publisher_that_fails_keeps_neither_the_others_nor_the_next_image_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(Audience):
        def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
            super().publish(delta, image)
            raise ValueError("no address")

    failing, other = Failing(), Audience()
    loader = Loader([failing, other])
    for offset in (3, 4):
        loader.load([topic(f"t{offset}")], offset, 1)
        assert loader.publish() is loader.image
    assert len(failing.published) == len(other.published) == loader.failures == 2
    reported = "Failed to apply the metadata up to offset 3 in Failing"
    assert (caplog.records[0].levelname, caplog.records[0].message) == ("CRITICAL", reported)


def test_publishing_nothing_calls_no_publisher() -> None:
    audience = Audience()
    loader = Loader([audience])
    assert loader.publish() is EMPTY_IMAGE
    assert audience.published == []


def test_a_batch_without_records_still_moves_the_offset() -> None:
    loader = Loader()
    loader.load([], 9, 4)
    assert (loader.publish().offset, loader.image.topics is EMPTY_IMAGE.topics) == (9, True)


def topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=name.encode() * 16)


def test_records_of_a_transaction_count_at_its_end_or_not_at_all() -> None:
    loader = Loader()
    loader.load([topic("a"), BeginTransactionRecord(name="x"), topic("b")], 2, 1)
    assert loader.is_in_transaction
    assert list(loader.publish().topics.by_name) == ["a"]
    loader.load([topic("c"), EndTransactionRecord(), topic("d")], 5, 1)
    assert not loader.is_in_transaction
    assert set(loader.publish().topics.by_name) == set("abcd")
    loader.load([BeginTransactionRecord(), topic("e"), AbortTransactionRecord(reason="why"), topic("f")], 9, 1)
    assert set(loader.publish().topics.by_name) == set("abcdf")
    assert loader.image.offset == 9


@pytest.mark.parametrize(
    "records",
    [[EndTransactionRecord()], [AbortTransactionRecord()], [BeginTransactionRecord(), BeginTransactionRecord()]],
    ids=["ends before it begins", "aborted before it begins", "begins twice"],
)
def test_transactions_that_do_not_follow_each_other_are_damage(records: list[Message]) -> None:
    with pytest.raises(RecordError, match="a metadata transaction cannot begin or end"):
        Loader().load(records, 1, 1)
