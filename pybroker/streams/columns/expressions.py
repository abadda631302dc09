"""Expressions over the fields of a value, such as `col("amount") > 10`, and projections of values.

Owns what an expression means for one record. `kernels` compiles the same expressions for batches. Null follows SQL: an
operation on null returns null, `&` and `|` follow Kleene's logic, and a filter keeps a record only if its predicate is
true.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from pybroker.streams.errors import TopologyError

Scalar = int | float | str | bool
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
LOGIC = ("&", "|")


class Column(ABC):
    """An expression over the fields of a value.

    An expression is a predicate and a mapper: called with `(key, value)`, it returns its result for the value. Integers
    have 64 bits. `/` divides as floats. Operands must be numbers, or have the same type.
    """

    @abstractmethod
    def evaluate(self, value: Any) -> Any:
        """Return the result for one value; None is null.

        Raises:
            TypeError: an operand has the wrong type.
            ArithmeticError: the result has more than 64 bits, or a divisor is zero.
        """

    def __call__(self, key: Any, value: Any) -> Any:
        """Return the result for the value of a record. The key is not used."""
        del key
        return self.evaluate(value)

    def __bool__(self) -> bool:
        """Raise an error: `and`, `or` and `not` cannot be part of an expression."""
        raise TypeError(f"the expression {self!r} has no truth value: use &, | and ~ in place of and, or and not")

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Column | Scalar) -> Column:
        return Binary("+", self, literal(other))

    def __radd__(self, other: Scalar) -> Column:
        return Binary("+", literal(other), self)

    def __sub__(self, other: Column | Scalar) -> Column:
        return Binary("-", self, literal(other))

    def __rsub__(self, other: Scalar) -> Column:
        return Binary("-", literal(other), self)

    def __mul__(self, other: Column | Scalar) -> Column:
        return Binary("*", self, literal(other))

    def __rmul__(self, other: Scalar) -> Column:
        return Binary("*", literal(other), self)

    def __truediv__(self, other: Column | Scalar) -> Column:
        return Binary("/", self, literal(other))

    def __rtruediv__(self, other: Scalar) -> Column:
        return Binary("/", literal(other), self)

    def __eq__(self, other: Column | Scalar) -> Column:  # type: ignore[override]
        return Binary("==", self, literal(other))

    def __ne__(self, other: Column | Scalar) -> Column:  # type: ignore[override]
        return Binary("!=", self, literal(other))

    def __lt__(self, other: Column | Scalar) -> Column:
        return Binary("<", self, literal(other))

    def __le__(self, other: Column | Scalar) -> Column:
        return Binary("<=", self, literal(other))

    def __gt__(self, other: Column | Scalar) -> Column:
        return Binary(">", self, literal(other))

    def __ge__(self, other: Column | Scalar) -> Column:
        return Binary(">=", self, literal(other))

    def __and__(self, other: Column | bool) -> Column:
        return Binary("&", self, literal(other))

    def __rand__(self, other: bool) -> Column:
        return Binary("&", literal(other), self)

    def __or__(self, other: Column | bool) -> Column:
        return Binary("|", self, literal(other))

    def __ror__(self, other: bool) -> Column:
        return Binary("|", literal(other), self)

    def __invert__(self) -> Column:
        return Inverted(self)

    def is_null(self) -> Column:
        """Return an expression that is true where this one is null."""
        return IsNull(self)

    def fill_null(self, value: Column | Scalar) -> Column:
        """Return an expression that is `value` where this one is null."""
        return FillNull(self, literal(value))


class Field(Column):
    """A field of the value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"col({self.name!r})"

    def evaluate(self, value: Any) -> Any:
        """Return the field, or None if it is missing."""
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise TypeError(f"{self!r} needs a value with fields, such as a dict: found {type(value).__name__}")
        return value.get(self.name)


class Literal(Column):
    """A constant."""

    def __init__(self, value: Scalar) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)

    def evaluate(self, value: Any) -> Any:
        """Return the constant."""
        del value
        return self.value


class Binary(Column):
    """An operator with two operands."""

    def __init__(self, symbol: str, left: Column, right: Column) -> None:
        self.symbol, self.left, self.right = symbol, left, right
        self._apply = _applied(symbol)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.symbol} {self.right!r})"

    def evaluate(self, value: Any) -> Any:
        """Return the result of the operator."""
        try:
            return self._apply(self.left.evaluate(value), self.right.evaluate(value))
        except (TypeError, ArithmeticError) as error:
            if getattr(error, "__notes__", None) is None:
                error.add_note(f"in the expression {self!r}")
            raise


class Inverted(Column):
    """Logical negation."""

    def __init__(self, operand: Column) -> None:
        self.operand = operand

    def __repr__(self) -> str:
        return f"~{self.operand!r}"

    def evaluate(self, value: Any) -> Any:
        """Return whether the operand is false, or None if it is null."""
        found = self.operand.evaluate(value)
        if found is None:
            return None
        if found is True or found is False:
            return not found
        raise TypeError(f"{self!r} needs a bool: found {found!r}")


class IsNull(Column):
    """The test for null."""

    def __init__(self, operand: Column) -> None:
        self.operand = operand

    def __repr__(self) -> str:
        return f"{self.operand!r}.is_null()"

    def evaluate(self, value: Any) -> bool:
        """Return whether the operand is null."""
        return self.operand.evaluate(value) is None


class FillNull(Column):
    """A replacement of null."""

    def __init__(self, operand: Column, replacement: Column) -> None:
        self.operand, self.replacement = operand, replacement

    def __repr__(self) -> str:
        return f"{self.operand!r}.fill_null({self.replacement!r})"

    def evaluate(self, value: Any) -> Any:
        """Return the operand, or the replacement if the operand is null."""
        found = self.operand.evaluate(value)
        return self.replacement.evaluate(value) if found is None else found


def col(name: str) -> Column:
    """Return the expression of a field of the value."""
    return Field(name)


def lit(value: Scalar) -> Column:
    """Return the expression of a constant: an int of 64 bits, a float, a str or a bool.

    Raises:
        TopologyError: the value has another type, or is too large.
    """
    return literal(value)


def literal(value: Column | Scalar) -> Column:
    """Return a value as an expression. An expression stays as it is.

    Raises:
        TopologyError: the value cannot be a constant.
    """
    if isinstance(value, Column):
        return value
    if isinstance(value, bool | float | str) or (isinstance(value, int) and INT_MIN <= value <= INT_MAX):
        return Literal(value)
    if value is None:
        raise TopologyError("None cannot be part of an expression: use is_null() or fill_null()")
    raise TopologyError(f"invalid constant {value!r:.100}: expected an int of 64 bits, a float, a str or a bool")


def _applied(symbol: str) -> Callable[[Any, Any], Any]:
    """Return the function of an operator, with its checks of nulls and types."""
    if symbol == "&":
        return _and
    if symbol == "|":
        return _or
    if symbol in COMPARISONS:
        compare = COMPARISONS[symbol]

        def comparison(left: Any, right: Any) -> bool | None:
            if left is None or right is None:
                return None
            if _kind(left) is not _kind(right):
                raise TypeError(f"cannot compare {left!r} with {right!r}: expected two operands of one type")
            return compare(left, right)

        return comparison
    calculate = ARITHMETIC[symbol]

    def arithmetic(left: Any, right: Any) -> int | float | None:
        if left is None or right is None:
            return None
        if _kind(left) is not float or _kind(right) is not float:
            raise TypeError(f"cannot calculate {left!r} {symbol} {right!r}: expected two numbers")
        result: int | float = calculate(left, right)
        if type(result) is int and not INT_MIN <= result <= INT_MAX:
            raise OverflowError(f"{left} {symbol} {right} has more than 64 bits")
        return result

    return arithmetic


def _kind(value: Any) -> type:
    """Return the kind of an operand: float for all numbers, str or bool."""
    kind = type(value)
    if kind is int or kind is float:
        return float
    if kind is str or kind is bool:
        return kind
    raise TypeError(f"{value!r:.100} cannot be part of an expression: expected an int, a float, a str or a bool")


def _and(left: Any, right: Any) -> bool | None:
    _check_logic(left, right, "&")
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Any, right: Any) -> bool | None:
    _check_logic(left, right, "|")
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _check_logic(left: Any, right: Any, symbol: str) -> None:
    for operand in (left, right):
        if operand is not None and operand is not True and operand is not False:
            raise TypeError(f"cannot evaluate {left!r} {symbol} {right!r}: expected two values of type bool")
