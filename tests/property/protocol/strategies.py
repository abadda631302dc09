"""Hypothesis strategies made from the declarations themselves: any message, in any version."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.schema import FieldSpec, Message, Struct, fields_of

_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
_TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(low, high) for name, (low, high) in _RANGES.items()},
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False),
    "string": _TEXT,
    "bytes": st.binary(max_size=9),
    "records": st.binary(max_size=9),
    "uuid": st.sampled_from([bytes(16), bytes(range(16))]) | st.binary(min_size=16, max_size=16),
}

_ERRORS = st.sampled_from([int(code) for code in ErrorCode])
# What a `datetime` can say: peers read some fields as points in time.
_SINCE_1970 = st.integers(0, 253_402_300_799_000)
_TIMES = st.just(-1) | _SINCE_1970
# Points in time that there always are.
_GIVEN_TIMES = frozenset({"expiry_timestamp_ms", "issue_timestamp_ms", "max_timestamp_ms", "transaction_start_time_ms"})


@cache
def messages(cls: type[Message], version: int, *, for_peers: bool = False) -> st.SearchStrategy[Message]:
    """Any `cls` that `version` can carry; `for_peers` keeps to numbers that other implementations have names for."""
    return _structs(cls, version, for_peers)  # type: ignore[return-value]


@cache
def _structs(cls: type[Struct], version: int, for_peers: bool) -> st.SearchStrategy[Struct]:
    reported = {field.name: _values(field, version, for_peers) for field in fields_of(cls) if version in field.versions}
    return st.builds(cls, **reported)


def _values(field: FieldSpec, version: int, for_peers: bool) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        one: st.SearchStrategy[Any] = _structs(field.struct, version, for_peers)
    elif for_peers and field.name.endswith("error_code"):
        one = _ERRORS
    elif for_peers and field.name in _GIVEN_TIMES:
        one = _SINCE_1970
    elif for_peers and field.type == "int64" and ("time" in field.name or "period" in field.name):
        one = _TIMES
    else:
        one = _PRIMITIVES[field.type.removeprefix("[]")]
    if field.array:
        one = st.lists(one, max_size=3)
    if version in field.nullable:
        one = st.none() | one
    # Defaults come up often, so that tagged fields are left out as well as written.
    return st.just(field.default) | one if version in field.tagged and field.struct is None and not field.array else one
