"""From record types to declarations."""

from __future__ import annotations

import pytest

from pybroker.protocol.messages.records import METADATA_RECORDS, record_class
from tests.support.declarations import declared


def test_every_declared_metadata_record_is_found_by_its_type() -> None:
    for cls in declared():
        if cls.__message__.kind == "metadata":
            assert record_class(cls.__message__.api_key) is cls


def test_every_listed_type_is_declared() -> None:
    assert [record_class(number).__name__ for number in METADATA_RECORDS] == list(METADATA_RECORDS.values())


def test_a_type_without_declaration_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        record_class(99)
