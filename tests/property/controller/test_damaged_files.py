"""What a start reads of the quorum's small files: a value or the file's own error, whatever the bytes."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pybroker.controller.errors import QuorumStateError
from pybroker.controller.quorum.log.epoch_checkpoint import EPOCHS_NAME, NO_EPOCH, read_last_epoch
from pybroker.controller.quorum.log.hard_state import FILE_NAME, HardState, read_hard_state
from pybroker.controller.quorum.log.log_position import POSITION_NAME, LogPosition, PositionFile, read_position

numbers = st.integers(0, 2**63 - 1)
positions = st.builds(LogPosition, numbers, numbers, numbers, numbers)
lines = st.one_of(
    st.text(alphabet="0123456789 -+_.xe", max_size=90),
    st.lists(st.integers(-(2**70), 2**70), max_size=6).map(lambda fields: " ".join(map(str, fields))),
)


@given(st.binary(max_size=300))
@example(b"9" * 5000)
def test_arbitrary_bytes_are_read_or_refused(content: bytes) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        for file in (POSITION_NAME, FILE_NAME, EPOCHS_NAME):
            (directory / file).write_bytes(content)
        assert isinstance(read_position(directory), LogPosition)
        assert read_last_epoch(directory) == NO_EPOCH or len(content.splitlines()) > 2
        with contextlib.suppress(QuorumStateError):
            read_hard_state(directory)


@given(lines)
@example(" ".join(["9" * 5000] * 4))
@example(f"{2**63} 0 0 0")
def test_a_position_of_the_right_checksum_fits_a_log_or_is_none(text: str) -> None:
    with TemporaryDirectory() as name:
        (Path(name) / POSITION_NAME).write_text(f"{text} {crc32(text.encode()):08x}\n")
        assert all(0 <= number < 2**63 for number in read_position(Path(name)))


@given(positions, st.integers(0, 95), st.integers(0, 255), st.integers(0, 95))
def test_a_damaged_position_is_none_and_no_other(position: LogPosition, at: int, byte: int, end: int) -> None:
    # CRC-32 differs for every two texts of one length that differ in one byte.
    with TemporaryDirectory() as name:
        file = PositionFile(Path(name))
        file.write(position)
        file.close()
        path = Path(name) / POSITION_NAME
        intact = path.read_bytes()
        assert len(intact) == 96
        assert read_position(Path(name)) == position
        path.write_bytes(intact[:at] + bytes([byte]) + intact[at + 1 :])
        assert read_position(Path(name)) in (position, LogPosition())
        path.write_bytes(intact[:end])
        assert read_position(Path(name)) in (position, LogPosition())


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5), st.lists))
def test_any_json_is_a_state_or_is_refused(value: object) -> None:
    with TemporaryDirectory() as name:
        for fields in (value, {"data_version": 0, "leaderEpoch": value, "votedId": 1}, {"data_version": value}):
            (Path(name) / FILE_NAME).write_text(json.dumps(fields))
            with contextlib.suppress(QuorumStateError):
                assert isinstance(read_hard_state(Path(name)), HardState)


def test_brackets_without_end_are_refused() -> None:
    with TemporaryDirectory() as name:
        (Path(name) / FILE_NAME).write_bytes(b"[" * 200_000)
        with pytest.raises(QuorumStateError, match="is damaged: not JSON"):
            read_hard_state(Path(name))
