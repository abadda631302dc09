"""Patterns mean what they mean to Kafka's engine, RE2/J, and what is wrong with one is said in its words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pybroker.coordinator.group.modern.regex import check_pattern, matching
from pybroker.coordinator.runtime.patterns import InvalidPatternError
from tests.support import group_oracle

NAMES = ["foo", "bar", "foo-1", "foo.bar", "FOO", "a", "ab", "aaa", "__consumer_offsets", "x_1", "é", "0", "12", "a b"]
ATOMS = r"foo bar a b . .* - _ [a-z] [^a] \d \w \b ^ $ ( | ) + ? {1,3} [ \ (?i) (?: (?= \Q \E \pL [[:alpha:]] \x41 \z"
PATTERNS = st.lists(st.sampled_from(ATOMS.split(" ")), min_size=1, max_size=4).map("".join)


def test_a_pattern_has_to_match_the_whole_name() -> None:
    assert matching("foo", NAMES) == {"foo"}
    assert matching("foo.*", NAMES) == {"foo", "foo-1", "foo.bar"}
    assert matching("(?i)foo|a+", NAMES) == {"foo", "FOO", "a", "aaa"}


def test_a_text_that_is_no_pattern_matches_nothing() -> None:
    assert matching("(", NAMES) == frozenset()


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(a", "missing closing )"),
        ("[a", "missing closing ]"),
        ("*a", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a\\", "trailing backslash at end of expression"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("\\1", "invalid escape sequence"),
        ("\\C", "invalid escape sequence"),
        ("[z-a]", "invalid character class range"),
        ("(a?a?a?a?a?){1000}", "pattern too large"),
        ("|".join(f"{letter}.{{1000}}{letter}" for letter in "abcdefghijklmnop"), "pattern too large"),
        ("a" * 4097, "pattern too large"),
    ],
)
def test_what_is_wrong_is_said_in_kafkas_words(pattern: str, fault: str) -> None:
    with pytest.raises(InvalidPatternError) as raised:
        check_pattern(pattern)
    assert str(raised.value) == fault


def test_a_pattern_may_name_a_hundred_topics() -> None:
    names = [f"a-topic-with-a-long-name-{number:03d}" for number in range(100)]
    assert matching("|".join(names), [*names, *NAMES]) == set(names)


@pytest.fixture(scope="module")
def oracle() -> Iterator[group_oracle.GroupOracle]:
    with group_oracle.running() as running:
        yield running


@pytest.mark.java
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=PATTERNS)
def test_a_pattern_matches_what_it_matches_in_kafka(oracle: group_oracle.GroupOracle, pattern: str) -> None:
    theirs = oracle.query("match", pattern=pattern, names=NAMES)
    try:
        check_pattern(pattern)
    except InvalidPatternError:
        assert "error" in theirs
        return
    assert sorted(matching(pattern, NAMES)) == sorted(theirs["matches"])
