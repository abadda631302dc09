"""The frame around metadata records."""

from __future__ import annotations

import pytest

from pybroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pybroker.protocol.messages.records.broker_registration_change import BrokerRegistrationChangeRecord
from pybroker.protocol.messages.records.frame import decode_record, encode_record
from pybroker.protocol.messages.records.topic import TopicRecord

TOPIC = TopicRecord(name="foo", topic_id=bytes(range(16)))


def test_a_frame_is_three_varints_and_the_record() -> None:
    assert encode_record(TOPIC, 0) == b"\x01\x02\x00" + b"\x04foo" + bytes(range(16)) + b"\x00"
    assert encode_record(BrokerRegistrationChangeRecord(broker_id=1), 3)[:3] == b"\x01\x11\x03"


def test_a_record_comes_back_from_its_frame() -> None:
    assert decode_record(encode_record(TOPIC, 0)) == TOPIC
    assert decode_record(memoryview(encode_record(TOPIC, 0))) == TOPIC


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", "frame version"),
        (b"\x02\x02\x00", "frame version 2"),
        (encode_record(TOPIC, 0) + b"x", "Found 1 byte"),
        (encode_record(TOPIC, 0)[:-1], "TopicRecord: "),
    ],
)
def test_a_value_that_is_no_frame_is_malformed(value: bytes, text: str) -> None:
    with pytest.raises(MalformedMessage, match=text):
        decode_record(value)


@pytest.mark.parametrize(("value", "text"), [(b"\x01\x63\x00", "metadata id 99"), (b"\x01\x02\x09", "no version 9")])
def test_a_record_that_is_not_declared_is_unsupported(value: bytes, text: str) -> None:
    with pytest.raises(UnsupportedVersion, match=text):
        decode_record(value)
