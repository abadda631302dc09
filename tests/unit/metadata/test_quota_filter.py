"""Which entities of client quotas a filter matches, and which filters contradict themselves."""

from __future__ import annotations

import pytest

from pybroker.metadata.quota_filter import ANY, DEFAULT, EXACT, Component, QuotaFilter
from pybroker.metadata.quotas import quota_entity

ENTITIES = {
    "user a": quota_entity([("user", "a")]),
    "any user": quota_entity([("user", None)]),
    "a and c": quota_entity([("user", "a"), ("client-id", "c")]),
    "any client": quota_entity([("client-id", None)]),
    "address": quota_entity([("ip", "10.0.0.1")]),
}


def matched(*components: Component, strict: bool) -> list[str]:
    wanted = QuotaFilter(components, strict)
    assert wanted.fault() is None
    return [name for name, entity in ENTITIES.items() if wanted.matches(entity)]


def test_a_filter_matches_by_name_by_default_and_by_type() -> None:
    exact = Component("user", EXACT, "a")
    assert matched(exact, strict=True) == ["user a"]
    assert matched(exact, strict=False) == ["user a", "a and c"]
    assert matched(Component("user", DEFAULT, None), strict=False) == ["any user"]
    assert matched(Component("user", ANY, None), strict=True) == ["user a", "any user"]
    assert matched(Component("user", ANY, None), Component("client-id", EXACT, "c"), strict=True) == ["a and c"]
    assert matched(Component("client-id", ANY, None), strict=False) == ["a and c", "any client"]


def test_a_filter_without_parts_matches_all_or_where_it_is_strict_none() -> None:
    assert matched(strict=False) == list(ENTITIES)
    assert matched(strict=True) == []


@pytest.mark.parametrize(
    ("components", "words"),
    [
        ([("", ANY, None)], "Invalid empty entity type."),
        ([("user", ANY, None), ("user", EXACT, "a")], "Entity type user cannot appear more than once in the filter."),
        ([("user", EXACT, None)], "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        ([("user", DEFAULT, "a")], "Request specified MATCH_TYPE_DEFAULT, but also specified a match string."),
        ([("user", ANY, "a")], "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string."),
        ([("user", 3, None)], "Unknown match type 3"),
        ([("user", ANY, None), ("ip", ANY, None)], "Invalid entity filter component combination."),
    ],
)
def test_a_filter_that_contradicts_itself_is_refused(components: list[tuple[str, int, str | None]], words: str) -> None:
    fault = QuotaFilter(tuple(Component(*one) for one in components), strict=False).fault()
    assert fault is not None
    assert fault.startswith(words)


def test_a_type_that_nobody_knows_is_named_unless_something_before_it_is_wrong() -> None:
    planet = Component("planet", ANY, None)
    assert QuotaFilter((planet,), strict=True).unknown_type() == "planet"
    assert QuotaFilter((Component("", ANY, None), planet), strict=True).unknown_type() is None
    assert QuotaFilter((Component("user", ANY, None),), strict=True).unknown_type() is None
