"""The types of expressions, which are known before a batch arrives."""

from __future__ import annotations

import pyarrow
import pyarrow.compute
import pytest

from pybroker.streams import Column, TopologyError, col, lit
from pybroker.streams.columns.kernels import Kernels

SCHEMA = {"i": int, "f": float, "s": str, "b": bool}
KERNELS = Kernels(pyarrow, pyarrow.compute)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (col("i") + 1, int),
        (col("i") + 1.0, float),
        (col("i") / 2, float),
        (col("i") > col("f"), bool),
        (col("s").fill_null("x"), str),
        (col("s").is_null() | col("b"), bool),
        (lit(1), int),
    ],
    ids=repr,
)
def test_type_of_an_expression(expression: Column, kind: type) -> None:
    assert KERNELS.compile(expression, SCHEMA)[0] is kind


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (col("x") > 1, "unknown field 'x': expected one of i, f, s, b"),
        (col("s") > 1, r"the expression \(col\('s'\) > 1\) needs two operands of one type: found str and int"),
        (col("s") + 1, "needs two numbers: found str and int"),
        (col("b") & col("i"), "needs two values of type bool: found bool and int"),
        (~col("f"), "needs a bool: found float"),
        (col("i").fill_null(1.5), "needs a replacement of the same type: found int and float"),
    ],
    ids=repr,
)
def test_wrong_operand_is_refused(expression: Column, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        KERNELS.compile(expression, SCHEMA)
