from __future__ import annotations

import argparse

import pytest

from pybroker.cli.errors import CommandError
from pybroker.cli.option_rules import is_given, refuse_with, require


def options(**values: object) -> argparse.Namespace:
    return argparse.Namespace(**values)


@pytest.mark.parametrize(
    ("value", "given"), [(None, False), (False, False), ([], False), (0, True), ("", True), (["a"], True), (True, True)]
)
def test_an_option_is_given_with_any_value_but_its_default(value: object, given: bool) -> None:
    assert is_given(options(if_exists=value), "if-exists") is given


def test_the_first_option_that_is_missing_is_named() -> None:
    require(options(topic="t"), "topic")
    with pytest.raises(CommandError, match=r'^Missing required argument "\[b\]"$'):
        require(options(a=1, b=None, c=None), "a", "b", "c")


def test_options_that_do_not_go_together_are_named_in_the_order_of_the_rule() -> None:
    refuse_with(options(a=None, b=1), "a", "b")
    refuse_with(options(a=1, b=None), "a", "b")
    with pytest.raises(CommandError, match=r"""^Option "\[a\]" can't be used with option "\[c\]"$""") as refusal:
        refuse_with(options(a=1, b=None, c=2, d=3), "a", "b", "c", "d")
    assert refusal.value.status == 1
