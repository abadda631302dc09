"""A map in RocksDB behaves as a dict that is sorted: changes, iterations, commits, crashes and cleared prefixes."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pybroker.streams.state.rocks import RocksDatabase, StoreNumbers
from pybroker.streams.state.rocks_map import RocksMap

KEYS = st.binary(max_size=2) | st.sampled_from([b"\xff", b"\xff\xff", b"\x00", b"a", b"b"])
BOUNDS = st.none() | KEYS
PREFIXES = (b"\x01", b"\x02\x00\xff", b"\x02\x01\x00")


class RocksMapMachine(RuleBasedStateMachine):
    """Three maps of one database, and a dict for each."""

    @initialize()
    def start(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="rocks-map-"))
        self.model: list[dict[bytes, bytes]] = [{} for _ in PREFIXES]
        self.committed: list[dict[bytes, bytes]] = [{} for _ in PREFIXES]
        self.offset: int | None = None
        self.iterators: list[tuple[Iterator[tuple[bytes, bytes]], list[bytes], int]] = []
        self.open()

    def open(self) -> None:
        self.database = RocksDatabase(self.path / "db", "s", "key-value", StoreNumbers())
        self.maps = [RocksMap(self.database, prefix) for prefix in PREFIXES]
        assert self.database.committed_offset == self.offset

    @rule(at=st.integers(0, 2), key=KEYS, value=st.binary(max_size=3))
    def put(self, at: int, key: bytes, value: bytes) -> None:
        self.maps[at].put(key, value)
        self.model[at][key] = value

    @rule(at=st.integers(0, 2), key=KEYS)
    def remove(self, at: int, key: bytes) -> None:
        self.maps[at].remove(key)
        self.model[at].pop(key, None)

    @rule(at=st.integers(0, 2), key=KEYS)
    def get(self, at: int, key: bytes) -> None:
        assert self.maps[at].get(key) == self.model[at].get(key)

    @rule(at=st.integers(0, 2))
    def clear(self, at: int) -> None:
        self.maps[at].clear()
        self.model[at].clear()

    def keys(self, at: int, lower: bytes | None, upper: bytes | None, forward: bool, include: bool) -> list[bytes]:
        return sorted(
            (
                key
                for key in self.model[at]
                if (lower is None or key >= lower) and (upper is None or key < upper or (include and key == upper))
            ),
            reverse=not forward,
        )

    @rule(at=st.integers(0, 2), lower=BOUNDS, upper=BOUNDS, forward=st.booleans(), include=st.booleans())
    def range(self, at: int, lower: bytes | None, upper: bytes | None, forward: bool, include: bool) -> None:
        expected = [(key, self.model[at][key]) for key in self.keys(at, lower, upper, forward, include)]
        assert list(self.maps[at].range(lower, upper, forward, include)) == expected

    @rule(at=st.integers(0, 2), lower=BOUNDS, upper=BOUNDS, forward=st.booleans(), include=st.booleans())
    def begin(self, at: int, lower: bytes | None, upper: bytes | None, forward: bool, include: bool) -> None:
        rows = self.maps[at].range(lower, upper, forward, include)
        self.iterators.append((rows, self.keys(at, lower, upper, forward, include), at))

    @rule(steps=st.integers(1, 4))
    def proceed(self, steps: int) -> None:
        if not self.iterators:
            return
        rows, keys, at = self.iterators[-1]
        for _ in range(steps):
            while keys and keys[0] not in self.model[at]:
                keys.pop(0)
            expected = (keys[0], self.model[at][keys.pop(0)]) if keys else None
            assert next(rows, None) == expected
            if expected is None:
                self.iterators.pop()
                return

    @rule(offset=st.none() | st.integers(0, 1 << 40))
    def commit(self, offset: int | None) -> None:
        self.database.commit(offset)
        self.committed = [dict(entries) for entries in self.model]
        self.offset = self.offset if offset is None else offset
        assert self.database.uncommitted_bytes == 0

    @rule()
    def crash(self) -> None:
        self.database.close()
        assert all(next(rows, None) is None for rows, _, _ in self.iterators)
        self.iterators.clear()
        self.model = [dict(entries) for entries in self.committed]
        self.open()

    @invariant()
    def size_is_not_negative(self) -> None:
        if hasattr(self, "database"):
            assert self.database.uncommitted_bytes >= 0

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            shutil.rmtree(self.path)


RocksMapMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=60, deadline=None)
TestRocksMap = RocksMapMachine.TestCase
