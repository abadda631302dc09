"""The codec's rules as Python sees them; bytes of whole messages are in `tests/property/protocol`."""

from __future__ import annotations

import gc
from typing import Annotated, Any

import pytest

from pybroker.protocol.codec import decode, encode, encode_element
from pybroker.protocol.errors import ErrorCode, MalformedMessage, UnencodableValue, UnsupportedVersion
from pybroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from pybroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pybroker.protocol.messages.fetch import FetchResponse, PartitionData
from pybroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from pybroker.protocol.schema import Message, Struct, int32, octets, versions


def test_bytes_are_as_the_protocol_guide_has_them() -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=3, replication_factor=1)])
    classic = "00000001 000174 00000003 0001 00000000 00000000 0000ea60 00"
    assert encode(request, 4) == bytes.fromhex(classic)
    compact = "02 0274 00000003 0001 01 01 00 0000ea60 00 00"
    assert encode(request, 5) == bytes.fromhex(compact)


def test_an_array_takes_an_element_that_is_encoded_already() -> None:
    topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
    element = encode_element(CreateTopicsRequest, topic, 5)
    assert element == bytes.fromhex("0274 00000003 0001 01 01 00")
    mixed: list[Any] = [element, topic, element]
    assert encode(CreateTopicsRequest(topics=mixed), 5) == bytes.fromhex("04") + 3 * element + bytes.fromhex(
        "0000ea60 00 00"
    )


def test_only_structs_of_the_message_are_encoded_as_its_elements() -> None:
    with pytest.raises(TypeError, match=r"CreateTopicsRequest: .*DeleteTopicState.* is none of its structs"):
        encode_element(CreateTopicsRequest, DeleteTopicState(name="t"), 5)
    with pytest.raises(UnsupportedVersion, match="CreateTopicsRequest has no version 99"):
        encode_element(CreateTopicsRequest, CreatableTopic(name="t"), 99)


def test_a_field_that_the_version_lacks_is_dropped_when_ignorable_or_default() -> None:
    assert encode(MetadataResponse(cluster_id="dropped", throttle_time_ms=5), 0) == bytes(8)
    assert encode(MetadataRequest(topics=[], allow_auto_topic_creation=True), 0) == bytes(4)


def test_a_field_that_the_version_lacks_is_an_error_otherwise() -> None:
    with pytest.raises(UnsupportedVersion, match=r"MetadataRequest: allow_auto_topic_creation: version 3 .* False"):
        encode(MetadataRequest(allow_auto_topic_creation=False), 3)
    with pytest.raises(UnsupportedVersion, match=r"DeleteTopicsRequest: topics: version 5 .*'a'"):
        encode(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]), 5)


def test_null_is_written_only_where_the_version_has_it() -> None:
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    with pytest.raises(UnsupportedVersion, match="MetadataRequest: topics: null cannot be written in version 0"):
        encode(MetadataRequest(topics=None), 0)


@pytest.mark.parametrize("version", [-1, 14])
def test_a_version_that_is_not_declared_is_named(version: int) -> None:
    with pytest.raises(UnsupportedVersion, match=f"MetadataRequest has no version {version}, only 0 to 13"):
        encode(MetadataRequest(), version)
    with pytest.raises(UnsupportedVersion, match=f"MetadataRequest has no version {version}, only 0 to 13"):
        decode(MetadataRequest, bytes(4), version)


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ({"name": 5}, r"topics\[0\]\.name: .*str wanted, not int"),
        ({"name": "\ud800"}, r"topics\[0\]\.name: .*surrogates not allowed"),
        ({"name": "x" * 32768}, r"topics\[0\]\.name: 32768 bytes or elements, at most 32767 fit"),
        ({"num_partitions": 2**31}, r"topics\[0\]\.num_partitions: 2147483648 does not fit Int32"),
        ({"num_partitions": 2**70}, r"topics\[0\]\.num_partitions: "),
        ({"num_partitions": "3"}, r"topics\[0\]\.num_partitions: "),
        ({"replication_factor": None}, r"topics\[0\]\.replication_factor: null cannot be written"),
        ({"configs": {}}, r"topics\[0\]\.configs: .*list wanted, not dict"),
        (
            {"configs": [CreatableTopic()]},
            r"topics\[0\]\.configs\[0\]: .*CreatableTopicConfig wanted, not CreatableTopic",
        ),
    ],
)
def test_a_value_that_its_type_cannot_hold_is_named_with_its_place(topic: dict[str, Any], text: str) -> None:
    with pytest.raises((UnencodableValue, UnsupportedVersion), match=f"CreateTopicsRequest: {text}"):
        encode(CreateTopicsRequest(topics=[CreatableTopic(**topic)]), 7)


def test_a_uuid_has_16_bytes() -> None:
    with pytest.raises(UnencodableValue, match=r"topics\[0\]\.topic_id: .*16 bytes wanted for a uuid, not 3"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"abc")]), 12)


def test_error_codes_tuples_and_buffers_may_stand_for_their_plain_twins() -> None:
    plain = PartitionData(error_code=1, aborted_transactions=[], records=b"abc")
    for records in (bytearray(b"abc"), memoryview(b"abc")):
        twin: Any = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, aborted_transactions=(), records=records)  # type: ignore[arg-type]
        assert _partition(twin) == _partition(plain)


def _partition(data: PartitionData) -> bytes:
    from pybroker.protocol.messages.fetch import FetchableTopicResponse

    return encode(FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])]), 12)


def test_a_message_is_read_at_an_offset_and_what_follows_is_left_alone() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    encoded = encode(request, 4)
    for buffer in (b"xx" + encoded + b"yyy", memoryview(b"xx" + encoded + b"yyy")):
        assert decode(MetadataRequest, buffer, 4, 2) == (request, len(encoded))
    with pytest.raises(MalformedMessage, match="begins past the end"):
        decode(MetadataRequest, b"abc", 4, 4)


def test_fields_that_the_version_lacks_take_fresh_defaults() -> None:
    first, _ = decode(DeleteTopicsRequest, bytes(8), 3)
    second, _ = decode(DeleteTopicsRequest, bytes(8), 3)
    first.topics.append(DeleteTopicState())
    assert second.topics == []


def test_malformed_bytes_are_named_with_field_and_position() -> None:
    with pytest.raises(MalformedMessage, match=r"MetadataRequest: topics\[0\]\.name: 5 bytes wanted at byte 6, 1 left"):
        decode(MetadataRequest, b"\x00\x00\x00\x01\x00\x05a", 1)
    with pytest.raises(MalformedMessage, match=r"topics\[0\]\.name: a string that is not UTF-8 at byte 4"):
        decode(MetadataRequest, b"\x00\x00\x00\x01\x00\x01\xff", 1)


def test_messages_give_the_garbage_collector_no_work() -> None:
    assert not gc.is_tracked(MetadataRequestTopic())


class Inner(Struct):
    value: Annotated[int, int32, versions("0+")] = 1


class Unsound(Message, kind="data", versions="0", flexible="none"):
    inner: Annotated[bytes, octets, versions("0+")] = 5  # type: ignore[assignment]


def test_a_default_that_its_type_does_not_have_is_reported_at_the_first_use() -> None:
    with pytest.raises(TypeError, match=r"Unsound: Unsound\.inner has a default that its type does not have"):
        encode(Unsound(), 0)


def test_only_messages_can_be_encoded() -> None:
    with pytest.raises(AttributeError, match="__message__"):
        encode(Inner(), 0)  # type: ignore[arg-type]
