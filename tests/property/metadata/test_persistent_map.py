"""A PersistentMap has what a dict has after the same changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pybroker.metadata.persistent_map import PersistentMap

# Few keys, so that they are replaced and removed; many, so that nodes are split.
KEYS = st.integers(0, 300).map("{:x}".format) | st.text(max_size=2)
CHANGES = st.dictionaries(KEYS, st.integers(1, 3) | st.none(), max_size=150)


@given(steps=st.lists(CHANGES, max_size=5))
def test_a_map_has_what_a_dict_has_after_the_same_changes(steps: list[dict[str, int | None]]) -> None:
    entries: PersistentMap[int] = PersistentMap()
    plain: dict[str, int] = {}
    for changes in steps:
        before, entries = (entries, dict(plain)), entries.with_changes(changes)
        plain = {key: value for key, value in {**plain, **changes}.items() if value is not None}
        assert entries == plain
        assert (len(entries), set(entries)) == (len(plain), plain.keys())
        assert [entries.get(key) for key in changes] == list(changes.values())
        assert before[0] == before[1]
        differing = {key for key in plain.keys() | before[1].keys() if plain.get(key) != before[1].get(key)}
        assert set(entries.keys_changed_since(before[0])) == differing
    assert PersistentMap(plain) == entries
