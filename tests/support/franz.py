"""Test programs on franz-go, a Kafka client in Go: how they are built, called and given records.

Must not know which records are sent.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO, NamedTuple

import pytest

from pybench.checkout import build_directory, building
from tests.support.corpus import Sent
from tests.support.repository import ROOT

NEEDS_GO = "franz-go needs Go 1.24 or newer on the search path: https://go.dev/dl"
_SOURCE = ROOT / "tests/support/go"
_NUMBER = struct.Struct(">q")


class Read(NamedTuple):
    """A consumed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


def has_go() -> bool:
    """Whether Go is installed."""
    return shutil.which("go") is not None


def franz_program(name: str) -> str:
    """Build the program `name` of `tests/support/go` once, and return its path. Skips the test without Go."""
    if not has_go():
        pytest.skip(NEEDS_GO)
    package = _SOURCE if name == "numbers" else _SOURCE / name
    built = build_directory() / "franz" / name
    with building():
        if not built.exists() or built.stat().st_mtime < (package / f"{name}.go").stat().st_mtime:
            words = ["go", "build", "-o", str(built), "."]
            done = subprocess.run(words, cwd=package, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return str(built)


def run_corpus(*words: str, sent: Iterable[Sent] = (), timeout_s: float) -> Iterator[Read]:
    """Run the program `corpus` with these records on its standard input. Returns its output."""
    done = subprocess.run(
        [franz_program("corpus"), *words],
        input=b"".join(map(_frame, sent)),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return _frames(BytesIO(done.stdout))


def _frame(record: Sent) -> bytes:
    numbers = _NUMBER.pack(record.partition) + _NUMBER.pack(0)
    headers = b"".join(_bytes(name.encode()) + _bytes(value) for name, value in record.headers)
    return numbers + _bytes(record.key) + _bytes(record.value) + _NUMBER.pack(len(record.headers)) + headers


def _bytes(value: bytes | None) -> bytes:
    return _NUMBER.pack(-1) if value is None else _NUMBER.pack(len(value)) + value


def _frames(source: BinaryIO) -> Iterator[Read]:
    while first := source.read(_NUMBER.size):
        (partition,) = _NUMBER.unpack(first)
        offset, key, value = _read_number(source), _read_bytes(source), _read_bytes(source)
        headers = [(_read_bytes(source) or b"", _read_bytes(source) or b"") for _ in range(_read_number(source))]
        yield Read(partition, offset, key, value, tuple((name.decode(), value) for name, value in headers))


def _read_number(source: BinaryIO) -> int:
    (number,) = _NUMBER.unpack(source.read(_NUMBER.size))
    return int(number)


def _read_bytes(source: BinaryIO) -> bytes | None:
    length = _read_number(source)
    return None if length < 0 else source.read(length)
