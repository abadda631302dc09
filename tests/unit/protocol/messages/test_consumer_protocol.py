"""The frame of the subscriptions and assignments of a classic group."""

from __future__ import annotations

import pytest

from pybroker.protocol.errors import MalformedMessage
from pybroker.protocol.messages import consumer_protocol_assignment as assignments
from pybroker.protocol.messages import consumer_protocol_subscription as subscriptions
from pybroker.protocol.messages.consumer_protocol import decode_framed, encode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription

SUBSCRIPTION = ConsumerProtocolSubscription(
    topics=["t"], owned_partitions=[subscriptions.TopicPartition(topic="t", partitions=[1])], generation_id=7
)


def test_a_frame_begins_with_its_version() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[assignments.TopicPartition(topic="t", partitions=[0, 2])]
    )
    raw = encode_framed(assignment, 1)
    assert raw == b"\0\1" + b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\2" + b"\0\0\0\0" + b"\0\0\0\2" + b"\xff\xff\xff\xff"
    assert decode_framed(ConsumerProtocolAssignment, raw) == assignment


@pytest.mark.parametrize("version", range(4))
def test_an_older_version_leaves_out_what_it_does_not_know(version: int) -> None:
    read = decode_framed(ConsumerProtocolSubscription, encode_framed(SUBSCRIPTION, version))
    assert bool(read.owned_partitions) == (version >= 1)
    assert read.generation_id == (7 if version >= 2 else -1)


def test_a_newer_version_begins_with_ours() -> None:
    raw = b"\0\x09" + encode_framed(SUBSCRIPTION, 3)[2:] + b"what the future adds"
    assert decode_framed(ConsumerProtocolSubscription, raw) == SUBSCRIPTION


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff", b"\0\0\0"])
def test_a_frame_cut_short_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedMessage):
        decode_framed(ConsumerProtocolSubscription, raw)
