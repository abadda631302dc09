"""From record types of `__consumer_offsets` to declarations."""

from __future__ import annotations

import pytest

from pybroker.protocol.messages import group_records
from pybroker.protocol.messages.group_records import GROUP_RECORDS, record_classes
from tests.support.declarations import declared


def test_every_declared_group_record_is_found_by_its_type() -> None:
    for cls in declared():
        spec = cls.__message__
        if not cls.__module__.startswith(group_records.__name__):
            continue
        if spec.kind == "coordinator-key":
            assert record_classes(spec.api_key).key is cls
        elif spec.kind == "coordinator-value":
            assert record_classes(spec.api_key).value is cls


def test_every_listed_type_is_declared_in_the_version_that_is_written() -> None:
    for number, (name, version) in GROUP_RECORDS.items():
        classes = record_classes(number)
        assert (classes.key.__name__, classes.value.__name__) == (f"{name}Key", f"{name}Value")
        assert version in classes.value.__message__.versions


def test_a_legacy_offset_commit_is_read_as_an_offset_commit() -> None:
    assert record_classes(0) == record_classes(1)


def test_a_type_without_declaration_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        record_classes(99)
