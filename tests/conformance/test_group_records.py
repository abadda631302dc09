"""Every kind of record that the coordinator writes, with a value and as a tombstone, as Kafka's dump tool reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pybroker.coordinator.group.log import encode_records
from pybroker.coordinator.group.records import WITH_EXPIRY, GroupRecord
from pybroker.protocol.messages.consumer_protocol import encode_framed
from pybroker.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from pybroker.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from pybroker.protocol.messages.group_records import GROUP_RECORDS, record_classes
from pybroker.protocol.schema import FieldSpec, Struct, fields_of
from tests.conformance.dump_tool import kafkas, ours
from tests.support import programs

_PLAIN = {"string": "some text", "uuid": bytes(range(16)), "bool": True, "bytes": b"\x00\x01"}
_FRAMED = {
    "protocol_type": "consumer",
    "subscription": encode_framed(ConsumerProtocolSubscription(topics=["t"]), 3),
    "assignment": encode_framed(ConsumerProtocolAssignment(assigned_partitions=[]), 3),
}
_NEWER = frozenset({"stored_description_topology_epoch", "failed_description_topology_epoch"})
"""Tagged fields of Kafka 4.4, which this Kafka's tool skips."""


def filled(cls: type[Struct], version: int) -> Any:
    """An instance with something in every field that the version has."""
    fields = [field for field in fields_of(cls) if version in field.versions and field.name not in _NEWER]
    return cls(**{field.name: _some(field, version) for field in fields})


def _some(field: FieldSpec, version: int) -> Any:
    if field.name in _FRAMED and field.struct is None:
        return _FRAMED[field.name]
    one = filled(field.struct, version) if field.struct is not None else _PLAIN.get(field.type.removeprefix("[]"), 7)
    return [one] if field.array else one


def every_record() -> list[tuple[int, int, GroupRecord]]:
    """(type, version of the value, record); a tombstone of each type among them."""
    made = []
    for number, (_, written) in GROUP_RECORDS.items():
        classes = record_classes(number)
        key = filled(classes.key, 0)
        made += [
            (number, written, GroupRecord(key, filled(classes.value, written))),
            (number, -1, GroupRecord(key, None)),
        ]
    expiring = record_classes(1)
    value = filled(expiring.value, WITH_EXPIRY)
    made.append((1, WITH_EXPIRY, GroupRecord(filled(expiring.key, 0), value, WITH_EXPIRY)))
    return made


def shown(out: str) -> list[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """(type, key, value) of each record that a dump shows; the value is None for a tombstone."""
    found = []
    for key, payload in re.findall(r" key: (\{.*?\}) payload: (.*)", out):
        read = json.loads(key)
        found.append((int(read["type"]), read["data"], None if payload == "<DELETE>" else json.loads(payload)))
    return found


def as_kafka(value: Any) -> Any:
    """Field names as Kafka's schemas have them."""
    if isinstance(value, Struct):
        return {_camel(name): as_kafka(getattr(value, name)) for name in value.__struct_fields__}
    return [as_kafka(one) for one in value] if isinstance(value, list) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


@pytest.mark.java
def test_kafkas_dump_tool_decodes_every_kind_of_record(tmp_path: Path) -> None:
    programs.kafka_tools()
    records = every_record()
    directory = tmp_path / "__consumer_offsets-0"
    directory.mkdir()
    log = directory / f"{0:020}.log"
    log.write_bytes(encode_records([record for *_, record in records], 5, codec=0, max_batch_bytes=1 << 20))
    run = ["--offsets-decoder", "--files", str(log)]
    (theirs,) = kafkas([run], tmp_path)
    assert (theirs.status, theirs.err) == (0, "")
    decoded = shown(theirs.out)
    assert [number for number, *_ in decoded] == [number for number, *_ in records]
    for (number, version, record), (_, key, value) in zip(records, decoded, strict=True):
        assert key == as_kafka(record.key), number
        if record.value is None:
            assert value is None, number
            continue
        assert value is not None, number
        assert int(value["version"]) == version, number
        _holds(value["data"], as_kafka(record.value), str(number))
    assert ours(run).out == theirs.out


def _holds(decoded: Any, written: Any, where: str) -> None:
    """Every field that Kafka shows is the one that was written; bytes and ids it shows in words of its own."""
    if isinstance(decoded, dict) and isinstance(written, dict):
        assert set(decoded) <= set(written), where
        assert _NEWER.isdisjoint(decoded), where
        for name, value in decoded.items():
            _holds(value, written[name], f"{where}.{name}")
    elif isinstance(decoded, list):
        assert len(decoded) == len(written), where
        for one, other in zip(decoded, written, strict=True):
            _holds(one, other, where)
    elif not isinstance(written, bytes):
        assert decoded == written, where
