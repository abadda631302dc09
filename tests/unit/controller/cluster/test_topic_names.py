"""Kafka's rules for topic names."""

from __future__ import annotations

import pytest

from pybroker.controller.cluster.topic_names import may_collide, metric_name, name_fault


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "...", "x" * 249, "__consumer_offsets"])
def test_a_legal_name_has_no_fault(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a b", "other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a\n", "other than ASCII alphanumerics"),
        ("ä", "other than ASCII alphanumerics"),
        ("a/b", "other than ASCII alphanumerics"),
    ],
)
def test_the_fault_of_an_illegal_name_says_why(name: str, words: str) -> None:
    fault = name_fault(name)
    assert fault is not None
    assert fault.startswith("Topic name is invalid: ")
    assert words in fault


def test_dots_and_underscores_collide_and_nothing_else_does() -> None:
    assert metric_name("a.b_c") == metric_name("a_b.c")
    assert metric_name("a-b") != metric_name("a_b")
    assert may_collide("a.b")
    assert may_collide("a_b")
    assert not may_collide("a-b")
