"""What an application refuses before it connects."""

from __future__ import annotations

import pytest

from pybroker.streams import STRING, KafkaStreams, StreamsBuilder, StreamsError

SETTINGS = {"application.id": "app", "bootstrap.servers": "localhost:1"}


def test_a_node_without_a_serde_is_named() -> None:
    builder = StreamsBuilder()
    builder.stream("in", key_serde=STRING, value_serde=STRING).map(lambda key, value: (value, key)).to("out")
    with pytest.raises(StreamsError, match=r"node KSTREAM-SINK-0000000002 has no serde for the keys: give key_serde"):
        KafkaStreams(builder.build(), SETTINGS)
    KafkaStreams(builder.build(), {**SETTINGS, "default.key.serde": STRING, "default.value.serde": STRING}).close()
