"""PersistentMap: a changed copy shares what did not change, and keys whose hashes are equal stay different keys."""

from __future__ import annotations

import tracemalloc
from itertools import combinations
from zlib import crc32

import pytest

from pybroker.metadata.persistent_map import LEAF_ENTRIES, PersistentMap


def numbered(count: int) -> PersistentMap[int]:
    return PersistentMap({f"key {number}": number + 1 for number in range(count)})


def test_a_changed_copy_leaves_the_original_as_it_was() -> None:
    before = numbered(100)
    after = before.with_changes({"key 5": 7, "new": 1, "key 6": None, "never": None})
    assert len(before) == 100
    assert (before["key 5"], before["key 6"]) == (6, 7)
    assert "new" not in before
    assert (len(after), after["key 5"], after["new"]) == (100, 7, 1)
    assert "key 6" not in after
    assert set(after.keys_changed_since(before)) == {"key 5", "new", "key 6"}
    assert list(after.keys_changed_since(after)) == []
    with pytest.raises(KeyError):
        after["key 6"]


@pytest.mark.parametrize("count", [1_000, 50_000])
def test_a_change_costs_the_same_whatever_the_size(count: int) -> None:
    entries = numbered(count)
    tracemalloc.start()
    try:
        entries.with_changes({"new": 1, "key 3": None})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Two paths from the root, each of at most seven nodes with 32 slots of 8 bytes, and two leaves.
    assert most < 2 * (7 * 32 * 8 + 4096), "a copy of the whole would be megabytes"


def test_a_map_whose_entries_were_all_removed_is_empty() -> None:
    entries = numbered(5_000)
    empty = entries.with_changes(dict.fromkeys(entries))
    assert (len(empty), list(empty), empty) == (0, [], PersistentMap())
    assert empty._root == {}, "no node is left behind"


def test_keys_with_equal_hashes_stay_different_keys() -> None:
    keys = keys_of_one_hash(LEAF_ENTRIES + 8)
    assert len({crc32(key.encode()) for key in keys}) == 1
    entries = PersistentMap({key: number + 1 for number, key in enumerate(keys)})
    assert [entries[key] for key in keys] == list(range(1, len(keys) + 1))
    assert len(entries.with_changes({keys[0]: None})) == len(keys) - 1
    assert sorted(entries) == sorted(keys)


def keys_of_one_hash(count: int) -> list[str]:
    """Keys of one CRC, which is linear: each is a text of 64 zeros with bits changed that leave the CRC as it is."""
    zeros = crc32(b"0" * 64)
    # By highest bit: what a combination of changed places does to the CRC, and the combination.
    basis: dict[int, tuple[int, int]] = {}
    unchanging = []
    for place in range(64):
        text = bytearray(b"0" * 64)
        text[place] ^= 1
        effect, places = crc32(text) ^ zeros, 1 << place
        while effect and effect.bit_length() in basis:
            other, others = basis[effect.bit_length()]
            effect, places = effect ^ other, places ^ others
        if effect:
            basis[effect.bit_length()] = effect, places
        else:
            unchanging.append(places)
    keys = [one ^ other for one, other in combinations(unchanging, 2)][:count]
    return ["".join("01"[key >> place & 1] for place in range(64)) for key in keys]
