"""What a control record says, as it stands at the end of its line.

Owns the text of each type of control record. Its key is a version and a type, two bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pybroker.cli.dump_log.errors import DamagedFileError
from pybroker.protocol.codec import decode
from pybroker.protocol.errors import MalformedMessage, UnsupportedVersion
from pybroker.protocol.kafka_json import json_of, json_text
from pybroker.protocol.messages.records.end_txn_marker import EndTxnMarker
from pybroker.protocol.messages.records.kraft_version import KRaftVersionRecord
from pybroker.protocol.messages.records.leader_change_message import LeaderChangeMessage
from pybroker.protocol.messages.records.snapshot_footer import SnapshotFooterRecord
from pybroker.protocol.messages.records.snapshot_header import SnapshotHeaderRecord
from pybroker.protocol.messages.records.voters import VotersRecord

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message

_KEY_BYTES = 4
_MARKER_BYTES = 6
_MARKERS = {0: "ABORT", 1: "COMMIT"}
_QUORUM_RECORDS: dict[int, tuple[str, type[Message]]] = {
    2: ("LeaderChange:", LeaderChangeMessage),
    3: ("SnapshotHeader", SnapshotHeaderRecord),
    4: ("SnapshotFooter", SnapshotFooterRecord),
    5: ("KRaftVersion", KRaftVersionRecord),
    6: ("KRaftVoters", VotersRecord),
}


def describe_control_record(key: bytes | None, value: bytes | None) -> str:
    """Return the text that Kafka's tool appends to the record. Raises `DamagedFileError`."""
    key, value = key or b"", value or b""
    if len(key) < _KEY_BYTES:
        raise DamagedFileError(
            "Invalid value size found for end control record key. Must have at least "
            f"{_KEY_BYTES} bytes, but found only {len(key)}"
        )
    record_type = int.from_bytes(key[2:4], "big", signed=True)
    try:
        if record_type in _MARKERS:
            return f" endTxnMarker: {_MARKERS[record_type]} coordinatorEpoch: {_coordinator_epoch(value)}"
        if record_type in _QUORUM_RECORDS:
            name, cls = _QUORUM_RECORDS[record_type]
            version = int.from_bytes(value[:2], "big", signed=True)
            record, _ = decode(cls, value, min(version, cls.__message__.versions.last))
            return f" {name} {json_text(json_of(record, version))}"
    except (MalformedMessage, UnsupportedVersion) as error:
        raise DamagedFileError(str(error)) from None
    return f" controlType: UNKNOWN({record_type})"


def _coordinator_epoch(value: bytes) -> int:
    if len(value) < _MARKER_BYTES:
        raise DamagedFileError(
            f"Invalid value size found for end transaction marker. Must have at least {_MARKER_BYTES} bytes, "
            f"but found only {len(value)}"
        )
    return decode(EndTxnMarker, value, 0, 2)[0].coordinator_epoch
