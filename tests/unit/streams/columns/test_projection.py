"""Projections of values."""

from __future__ import annotations

import pytest

from pybroker.streams import TopologyError, col, select, with_columns

ROW = {"user": "alice", "price": 2.5, "count": 4}


def test_select_keeps_fields_in_the_given_order() -> None:
    found = select("count", "user", total=col("price") * col("count"))("key", ROW)
    assert found == {"count": 4, "user": "alice", "total": 10.0}
    assert list(found) == ["count", "user", "total"]


def test_with_columns_replaces_and_adds() -> None:
    found = with_columns(price=col("price") * 2, vip=True)("key", ROW)
    assert found == {"user": "alice", "price": 5.0, "count": 4, "vip": True}
    assert list(found) == ["user", "price", "count", "vip"]


def test_null_value_stays_null() -> None:
    assert select("user")("key", None) is None
    assert with_columns(x=1)("key", None) is None


def test_select_names_a_field_once() -> None:
    with pytest.raises(TopologyError, match="select names the field 'user' twice"):
        select("user", user=col("price"))


def test_projection_has_fields() -> None:
    with pytest.raises(TopologyError, match="select has no fields: expected at least one name or expression"):
        select()
    with pytest.raises(TopologyError, match="with_columns has no expressions"):
        with_columns()
