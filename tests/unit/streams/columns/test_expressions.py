"""The results of expressions for one value, after SQL and Python."""

from __future__ import annotations

from typing import Any

import pytest

from pybroker.streams import Column, TopologyError, col, lit

ROW = {"i": 7, "f": 0.5, "s": "tea", "yes": True, "no": False, "big": 2**63 - 1}
NULL = col("missing")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (col("i") + 1, 8),
        (1 - col("i"), -6),
        (col("i") * col("f"), 3.5),
        (col("i") / 2, 3.5),
        (4 / col("f"), 8.0),
        (col("i") > 6, True),
        (col("i") == 7.0, True),
        (col("s") != "milk", True),
        (col("s") < "tee", True),
        (col("yes") & col("no"), False),
        (col("yes") | col("no"), True),
        (~col("no"), True),
        (NULL + 1, None),
        (NULL == NULL, None),
        (NULL & False, False),
        (NULL & True, None),
        (NULL | True, True),
        (NULL | False, None),
        (~NULL, None),
        (NULL.is_null(), True),
        (col("i").is_null(), False),
        (NULL.fill_null(3), 3),
        (col("i").fill_null(3), 7),
        (lit("x"), "x"),
    ],
    ids=repr,
)
def test_result_of_a_row(expression: Column, expected: object) -> None:
    found = expression("key", ROW)
    assert found == expected
    assert type(found) is type(expected)


def test_fields_of_a_null_value_are_null() -> None:
    assert col("i").evaluate(None) is None


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("s") > 1, "cannot compare 'tea' with 1: expected two operands of one type"),
        (col("yes") == 1, "cannot compare True with 1"),
        (col("s") + 1, r"cannot calculate 'tea' \+ 1: expected two numbers"),
        (col("yes") + 1, r"cannot calculate True \+ 1: expected two numbers"),
        (col("i") & True, "cannot evaluate 7 & True: expected two values of type bool"),
        (~col("i"), "needs a bool: found 7"),
        (col("big") + 1, "9223372036854775807 [+] 1 has more than 64 bits"),
        (col("i") / 0, "division by zero"),
    ],
    ids=repr,
)
def test_wrong_operand_is_an_error(expression: Column, message: str) -> None:
    with pytest.raises((TypeError, ArithmeticError), match=message):
        expression.evaluate(ROW)


def test_error_names_the_expression() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        ((col("i") / 0) > 1).evaluate(ROW)
    assert caught.value.__notes__ == ["in the expression (col('i') / 0)"]


def test_value_without_fields_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"col\('i'\) needs a value with fields, such as a dict: found str"):
        col("i").evaluate("tea")


def test_and_or_not_are_refused() -> None:
    with pytest.raises(TypeError, match=r"use &, \| and ~ in place of and, or and not"):
        bool(col("i") > 1)


@pytest.mark.parametrize("value", [None, 2**63, b"x", [1]], ids=repr)
def test_invalid_constant_is_refused(value: Any) -> None:
    with pytest.raises(TopologyError, match=r"None cannot be part|invalid constant"):
        assert col("i") + value
