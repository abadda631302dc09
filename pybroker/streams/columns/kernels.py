"""Expressions as functions of Arrow arrays, by the kernels of pyarrow.

Every function returns exactly what the expression returns for each row, or raises `pyarrow.ArrowInvalid`. Then the rows
are processed one by one, and the error reaches the handler of its record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pybroker.streams.columns.expressions import (
    ARITHMETIC,
    COMPARISONS,
    Binary,
    Column,
    Field,
    FillNull,
    Inverted,
    IsNull,
    Literal,
)
from pybroker.streams.errors import TopologyError

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.compute

Schema = Mapping[str, type]
"""The fields of a value in order, with int, float, str or bool."""
Arrays = Mapping[str, Any]
"""An array for each field. All have the same length."""
Kernel = Callable[[Arrays], Any]
"""Returns an array, or a scalar for a constant."""

FUNCTIONS = {"==": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
CALCULATIONS = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked", "/": "divide_checked"}
LOGIC = {"&": "and_kleene", "|": "or_kleene"}


class Kernels:
    """The compiler of expressions."""

    def __init__(self, arrow: Any, compute: Any) -> None:
        """`arrow` is the module pyarrow, `compute` is pyarrow.compute."""
        self._arrow = arrow
        self._compute = compute
        self.types: Mapping[type, Any] = {
            int: arrow.int64(),
            float: arrow.float64(),
            str: arrow.string(),
            bool: arrow.bool_(),
        }
        """The Arrow type of each type of a field."""

    def compile(self, column: Column, schema: Schema) -> tuple[type, Kernel]:
        """Return the type of an expression, and the function that evaluates it.

        Raises:
            TopologyError: a field does not exist, or an operand has the wrong type.
        """
        if isinstance(column, Field):
            return self._field(column, schema)
        if isinstance(column, Literal):
            kind = type(column.value)
            constant = self._arrow.scalar(column.value, self.types[kind])
            return kind, lambda _arrays: constant
        if isinstance(column, Binary):
            return self._binary(column, schema)
        if isinstance(column, Inverted):
            kind, operand = self.compile(column.operand, schema)
            _check(kind is bool, column, "needs a bool", kind)
            return bool, lambda arrays: self._compute.invert(operand(arrays))
        if isinstance(column, IsNull):
            _, tested = self.compile(column.operand, schema)
            return bool, lambda arrays: self._compute.is_null(tested(arrays))
        assert isinstance(column, FillNull), "there is no other expression"
        kind, operand = self.compile(column.operand, schema)
        other, replacement = self.compile(column.replacement, schema)
        _check(kind is other, column, "needs a replacement of the same type", kind, other)
        return kind, lambda arrays: self._compute.coalesce(operand(arrays), replacement(arrays))

    def _field(self, column: Field, schema: Schema) -> tuple[type, Kernel]:
        name = column.name
        if name not in schema:
            raise TopologyError(f"unknown field {name!r}: expected one of {', '.join(schema)}")
        return schema[name], lambda arrays: arrays[name]

    def _binary(self, column: Binary, schema: Schema) -> tuple[type, Kernel]:
        symbol = column.symbol
        left_kind, left = self.compile(column.left, schema)
        right_kind, right = self.compile(column.right, schema)
        numbers = {left_kind, right_kind} <= {int, float}
        kind: type = bool
        if symbol in LOGIC:
            _check(left_kind is right_kind is bool, column, "needs two values of type bool", left_kind, right_kind)
            function = getattr(self._compute, LOGIC[symbol])
            return bool, lambda arrays: function(left(arrays), right(arrays))
        if symbol in COMPARISONS:
            _check(numbers or left_kind is right_kind, column, "needs two operands of one type", left_kind, right_kind)
            function = getattr(self._compute, FUNCTIONS[symbol])
            as_float = left_kind is not right_kind
        else:
            assert symbol in ARITHMETIC, "there is no other operator"
            _check(numbers, column, "needs two numbers", left_kind, right_kind)
            function = getattr(self._compute, CALCULATIONS[symbol])
            kind = int if left_kind is right_kind is int and symbol != "/" else float
            as_float = kind is float
        if not as_float:
            return kind, lambda arrays: function(left(arrays), right(arrays))
        return kind, lambda arrays: function(self._float(left(arrays)), self._float(right(arrays)))

    def _float(self, operand: Any) -> Any:
        """Return an operand as floats. An integer that a float cannot express raises `ArrowInvalid`."""
        return operand.cast(self.types[float], safe=True)

    def as_array(self, result: Any, rows: int) -> pyarrow.Array:
        """Return the result of a kernel as an array of so many rows."""
        return self._arrow.repeat(result, rows) if isinstance(result, self._arrow.Scalar) else result


def _check(valid: bool, column: Column, expected: str, *found: type) -> None:
    if not valid:
        raise TopologyError(
            f"the expression {column!r} {expected}: found {' and '.join(kind.__name__ for kind in found)}"
        )
