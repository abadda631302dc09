"""Projections: mappers of values that are made of column expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pybroker.streams.columns.expressions import Column, Field, Scalar, literal
from pybroker.streams.errors import TopologyError


class Projection:
    """A mapper of values: a dict with the result of each expression, in order. A value of None stays None."""

    def __init__(self, columns: Mapping[str, Column], *, keeps: bool) -> None:
        """`keeps` is whether the other fields of the value stay."""
        self.columns = dict(columns)
        self.keeps = keeps

    def __call__(self, key: Any, value: Any) -> dict[str, Any] | None:
        """Return the new value of a record. The key is not used.

        Raises:
            TypeError: the value has no fields, or an operand has the wrong type.
            ArithmeticError: an integer has more than 64 bits, or a divisor is zero.
        """
        del key
        if value is None:
            return None
        found = {name: column.evaluate(value) for name, column in self.columns.items()}
        return {**value, **found} if self.keeps else found


def select(*names: str, **columns: Column | Scalar) -> Projection:
    """Return the mapper that keeps the named fields, and adds the given expressions after them.

    Raises:
        TopologyError: no field is left, a name occurs twice, or a constant is invalid.
    """
    twice = sorted({name for name in names if names.count(name) > 1 or name in columns})
    if twice:
        raise TopologyError(f"select names the field {twice[0]!r} twice: expected each field once")
    chosen = {**{name: Field(name) for name in names}, **{name: literal(column) for name, column in columns.items()}}
    if not chosen:
        raise TopologyError("select has no fields: expected at least one name or expression")
    return Projection(chosen, keeps=False)


def with_columns(**columns: Column | Scalar) -> Projection:
    """Return the mapper that keeps all fields, and replaces or adds the given ones.

    Raises:
        TopologyError: no expression is given, or a constant is invalid.
    """
    if not columns:
        raise TopologyError("with_columns has no expressions: expected at least one")
    return Projection({name: literal(column) for name, column in columns.items()}, keeps=True)
