"""One configuration key: its Kafka name, type, default, range, and documentation.

Owns the conversion between text and values. A key is declared as a class attribute of a `Settings` class. Its Kafka
name is that of the attribute with dots for underscores, so a key is declared in exactly one place. Must not know
particular keys or their users.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from pybroker.config.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
LONGEST_NUMBER = 1000
"""Maximum characters of a number: Python parses at most 4,300 digits, and slowly."""


_REPLICA = re.compile(r"(?:[0-9]+:[0-9]+)?")
# The syntax of Double.parseDouble, except NaN, which fits no range, and hexadecimal digits.
_FRACTION = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|Infinity)")
_PYTHON_CLASS = re.compile(r"[\w.]+:\w+")


class Kind(IntEnum):
    """The type of a key, numbered as DescribeConfigs v3 and later report it (KIP-569)."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Key(Generic[T]):
    """A declared key. Accessed on the class it is the declaration, accessed on an instance it is the value."""

    __slots__ = (
        "acts",
        "attribute",
        "check",
        "default",
        "doc",
        "dynamic",
        "expected",
        "is_fixed",
        "kind",
        "name",
        "ours",
        "parse",
    )

    def __init__(
        self,
        kind: Kind,
        default: T,
        doc: str,
        *,
        parse: Callable[[str], T],
        check: Callable[[T], bool],
        expected: str,
        acts: bool = True,
        dynamic: bool = False,
        ours: str = "",
        is_fixed: bool = False,
    ) -> None:
        self.kind = kind
        self.default = default
        self.doc = doc
        self.parse = parse
        self.check = check
        self.expected = expected
        self.acts = acts  # False: the key is accepted and validated, but has no effect
        self.dynamic = dynamic  # Kafka can change it at runtime; others are read-only in DescribeConfigs
        self.ours = ours  # for a key that Kafka does not have: when to set it
        self.is_fixed = is_fixed  # only the value of the actual behaviour is accepted, so no code reads the key
        self.name = ""
        self.attribute = ""

    def redeclared(self) -> Key[T]:
        """Return a key with this type, range and documentation, for another class. It can change at runtime."""
        return Key(
            self.kind,
            self.default,
            self.doc,
            parse=self.parse,
            check=self.check,
            expected=self.expected,
            acts=self.acts,
            dynamic=True,
            ours=self.ours,
            is_fixed=self.is_fixed,
        )

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = attribute.replace("_", ".")

    @overload
    def __get__(self, instance: None, owner: type) -> Key[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Key[T] | T:
        if instance is None:
            return self
        # The __dict__ of an instance has every value and takes precedence. Only an incomplete instance gets here.
        raise AttributeError(self.attribute)

    def value_of(self, text: str) -> T:
        """Parse a value. Raises ConfigError for a value of another type or out of range."""
        try:
            value = self.parse(text.strip())
        except ValueError:
            raise ConfigError(self.name, text, self.expected) from None
        if not self.check(value):
            raise ConfigError(self.name, text, self.expected)
        return value

    def text_of(self, value: T | None) -> str | None:
        """Return Kafka's text of a value, as in DescribeConfigs; None for no value."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        if isinstance(value, float):
            return str(value).replace("e+", "E").replace("e", "E").replace("inf", "Infinity")
        return str(value)


def _whole_number(text: str) -> int:
    # int() also accepts "1_000" and a leading "+"; Kafka accepts neither "1_000" nor blanks inside.
    if "_" in text:
        raise ValueError(text)
    return int(text)


def _fraction(text: str) -> float:
    # float() also accepts "1_0" and "inf", which Kafka rejects.
    if _FRACTION.fullmatch(text) is None:
        raise ValueError(text)
    return float(text.rstrip("fFdD"))


def _truth(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(text)
    return lowered == "true"


def parse_list(text: str) -> tuple[str, ...]:
    """Return the items of a comma-separated text."""
    return tuple(item.strip() for item in text.split(",")) if text else ()


def _fraction_text(at_least: float | None, at_most: float | None) -> str:
    if at_least is not None and at_most is not None:
        return f"a number from {at_least} to {at_most}"
    return "a number" if at_least is None else f"a number of at least {at_least}"


def boolean(
    default: bool, doc: str, *, only: bool | None = None, acts: bool = True, dynamic: bool = False
) -> Key[bool]:
    """Declare a key that is `true` or `false`; `only` is the only supported value."""
    return Key(
        Kind.BOOLEAN,
        default,
        doc,
        parse=_truth,
        check=lambda value: only is None or value is only,
        expected="true or false"
        if only is None
        else f"{str(only).lower()}, as this version does not support the other value",
        acts=acts,
        dynamic=dynamic,
        is_fixed=only is not None,
    )


def optional_boolean(doc: str) -> Key[bool | None]:
    """Declare a key that is `true` or `false` without a default: other keys apply when it is absent."""
    return Key(Kind.BOOLEAN, None, doc, parse=_truth, check=lambda _: True, expected="true or false")


def _number(
    kind: Kind,
    default: Any,
    doc: str,
    at_least: int | None,
    at_most: int | None,
    acts: bool,
    dynamic: bool,
    ours: str,
    but_not: int | None = None,
) -> Key[Any]:
    ceiling = {Kind.INT: INT_MAX, Kind.LONG: LONG_MAX, Kind.SHORT: 2**15 - 1}[kind]
    low = -ceiling - 1 if at_least is None else at_least
    high = ceiling if at_most is None else at_most
    return Key(
        kind,
        default,
        doc,
        parse=_whole_number,
        check=lambda value: low <= value <= high and value != but_not,
        expected=f"a whole number from {low} to {high}" + ("" if but_not is None else f" other than {but_not}"),
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def integer(
    default: int,
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    but_not: int | None = None,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[int]:
    """Declare a 32-bit number; the range includes both ends, but not `but_not`."""
    return _number(Kind.INT, default, doc, at_least, at_most, acts, dynamic, ours, but_not)


def short(
    default: int,
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    acts: bool = True,
    dynamic: bool = False,
) -> Key[int]:
    """Declare a 16-bit number; the range includes both ends."""
    return _number(Kind.SHORT, default, doc, at_least, at_most, acts, dynamic, ours="")


def long(
    default: int,
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[int]:
    """Declare a 64-bit number; the range includes both ends."""
    return _number(Kind.LONG, default, doc, at_least, at_most, acts, dynamic, ours)


def optional_integer(
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    but_not: int | None = None,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[int | None]:
    """Declare a 32-bit number without a default: another key applies when it is absent."""
    return _number(Kind.INT, None, doc, at_least, at_most, acts, dynamic, ours, but_not)


def optional_long(
    doc: str, *, at_least: int | None = None, acts: bool = True, dynamic: bool = False
) -> Key[int | None]:
    """Declare a 64-bit number without a default: another key applies when it is absent."""
    return _number(Kind.LONG, None, doc, at_least, None, acts, dynamic, ours="")


def double(
    default: float,
    doc: str,
    *,
    at_least: float | None = 0.0,
    at_most: float | None = None,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[float]:
    """Declare a floating-point number; the range includes both ends."""
    return Key(
        Kind.DOUBLE,
        default,
        doc,
        parse=_fraction,
        check=lambda value: (at_least is None or at_least <= value) and (at_most is None or value <= at_most),
        expected=_fraction_text(at_least, at_most),
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def string(
    default: str,
    doc: str,
    *,
    one_of: tuple[str, ...] | None = None,
    any_case: bool = False,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[str]:
    """Declare a text; `one_of` are the allowed words, in lower case if `any_case` accepts any case."""
    return Key(
        Kind.STRING,
        default,
        doc,
        parse=str.lower if any_case else str,
        check=lambda value: one_of is None or value in one_of,
        expected="a text" if one_of is None else "one of " + ", ".join(one_of),
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def optional_string(
    doc: str,
    *,
    one_of: tuple[str, ...] | None = None,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[str | None]:
    """Declare a text without a default; an empty text counts as absent. `one_of` are the allowed words."""
    return Key(
        Kind.STRING,
        None,
        doc,
        parse=lambda text: text or None,
        check=lambda value: one_of is None or value is None or value in one_of,
        expected="a text" if one_of is None else "one of " + ", ".join(one_of),
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def listing(
    default: tuple[str, ...],
    doc: str,
    *,
    each_of: tuple[str, ...] | None = None,
    empty: bool = True,
    acts: bool = True,
    dynamic: bool = False,
    ours: str = "",
) -> Key[tuple[str, ...]]:
    """Declare a comma-separated list; `each_of` are the allowed items, `empty` allows a list without items.

    A duplicate item is removed (KIP-1161).
    """
    return Key(
        Kind.LIST,
        default,
        doc,
        parse=lambda text: tuple(dict.fromkeys(parse_list(text))),
        check=lambda items: (empty or bool(items)) and (each_of is None or all(item in each_of for item in items)),
        expected="a comma-separated list"
        + ("" if each_of is None else " of " + ", ".join(each_of))
        + ("" if empty else " that is not empty"),
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def throttled_replicas(doc: str) -> Key[tuple[str, ...]]:
    """Declare a list of partition:broker pairs, or * for all of them, validated as in Kafka."""
    return Key(
        Kind.LIST,
        (),
        doc,
        parse=parse_list,
        check=lambda items: "".join(items) == "*" or all(_REPLICA.fullmatch(item) for item in items),
        expected="the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        dynamic=True,
    )


def optional_listing(doc: str, *, acts: bool = True) -> Key[tuple[str, ...] | None]:
    """Declare a comma-separated list without a default: another key applies when it is absent."""
    return Key(
        Kind.LIST, None, doc, parse=parse_list, check=lambda _: True, expected="a comma-separated list", acts=acts
    )


def password(doc: str, *, acts: bool = False, dynamic: bool = True, ours: str = "") -> Key[str | None]:
    """Declare a secret without a default; it is never displayed or logged."""
    return Key(
        Kind.PASSWORD,
        None,
        doc,
        parse=lambda text: text or None,
        check=lambda _: True,
        expected="a text",
        acts=acts,
        dynamic=dynamic,
        ours=ours,
    )


def class_name(default: str | None, doc: str, *, dynamic: bool = True) -> Key[str | None]:
    """Declare the name of a Java class. Only the default is supported, since no Java class can be loaded."""
    return Key(
        Kind.CLASS,
        default,
        doc,
        parse=lambda text: text or None,
        check=lambda value: value == default,
        expected=f"{default or 'no class'}: no Java class can be loaded",
        acts=False,
        dynamic=dynamic,
    )


def is_python_class(text: str) -> bool:
    """Whether a text names a Python class as `module:Class`."""
    return _PYTHON_CLASS.fullmatch(text) is not None


def class_names(default: tuple[str, ...], doc: str) -> Key[tuple[str, ...]]:
    """Declare a list of Java classes. Only classes of the default are supported, since no Java class can be loaded."""
    return Key(
        Kind.LIST,
        default,
        doc,
        parse=parse_list,
        check=lambda items: all(item in default for item in items),
        expected=f"an empty list or {','.join(default)}: no Java class can be loaded",
        acts=False,
        dynamic=True,
    )


def no_items(doc: str) -> Key[tuple[str, ...]]:
    """Declare a list that must be empty, since no item is supported."""
    return Key(
        Kind.LIST,
        (),
        doc,
        parse=parse_list,
        check=lambda items: not items,
        expected="an empty list, as this version does not support any item",
        acts=False,
        dynamic=True,
    )


def unserved(kind: Kind, doc: str) -> Key[str | None]:
    """Declare an unsupported key. A value is an error, so that no protection is silently missing."""
    return Key(
        kind,
        None,
        doc,
        parse=lambda text: text or None,
        check=lambda value: value is None,
        expected="no value, as this version does not support this key",
        acts=False,
    )
