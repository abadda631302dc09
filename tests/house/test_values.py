"""Classes that only hold values have one form in each room (CONTRIBUTING.md, Values)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tests.support import repository

OF_PROGRAMS = ("pybroker/client/", "bench/", "spark/")
"""Rooms whose values programs receive, or Spark pickles: dataclasses, which have no order and no items."""
EVENTS_OF_MACHINES = ("pybroker/client/membership/", "pybroker/client/transaction/")
"""Machines among them, whose events are tuples as those of the broker's machines."""

TUPLES_OF_PROGRAMS = {
    "OffsetAndMetadata": "a tuple in the other clients of Python, which programs unpack",
    "RecordMetadata": "a tuple in the other clients of Python; the extension makes one for each record",
    "Signal": "a row of a Spark function",
    "_Direction": "a key, hashed for every move of a large assignment",
}


class ValueClass(NamedTuple):
    """A class with the form of its values."""

    where: str
    name: str
    form: str
    """`NamedTuple`, `dataclass` or `untyped`."""
    arguments: dict[str, object]


def value_classes() -> Iterator[ValueClass]:
    """Every class of the product that is a tuple or a dataclass; structs may stand anywhere."""
    for path in repository.files_under("pybroker", "bench", "spark", suffix=".py"):
        for node in ast.walk(repository.tree(path)):
            if isinstance(node, ast.ClassDef):
                where = f"{path}:{node.lineno}"
                for base in node.bases:
                    if name_of(base) == "NamedTuple":
                        yield ValueClass(where, node.name, "NamedTuple", {})
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    if name_of(called).rpartition(".")[2] == "dataclass":
                        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
                        yield ValueClass(where, node.name, "dataclass", constants(keywords))
            elif isinstance(node, ast.Call) and name_of(node.func).rpartition(".")[2] == "namedtuple":
                yield ValueClass(f"{path}:{node.lineno}", "namedtuple", "untyped", {})


def name_of(node: ast.expr) -> str:
    """A dotted name, of a generic one without its parameters; empty for what is none."""
    if isinstance(node, ast.Subscript):
        return name_of(node.value)
    return ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else ""


def constants(keywords: list[ast.keyword]) -> dict[str, object]:
    """The keywords with constants."""
    return {str(it.arg): it.value.value for it in keywords if isinstance(it.value, ast.Constant)}


CLASSES = list(value_classes())


def is_of_programs(it: ValueClass) -> bool:
    """Whether a class stands in a room of dataclasses."""
    return it.where.startswith(OF_PROGRAMS)


def test_values_inside_of_the_broker_are_named_tuples_or_structs() -> None:
    frozen = [it for it in CLASSES if it.form == "dataclass" and it.arguments.get("frozen")]
    assert [it.where for it in frozen if not is_of_programs(it)] == [], "make it a NamedTuple, or a msgspec.Struct"
    assert [it.where for it in CLASSES if it.form == "untyped"] == [], "make it a typing.NamedTuple"


def test_values_that_programs_receive_are_dataclasses() -> None:
    tuples = [it for it in CLASSES if is_of_programs(it) and it.form == "NamedTuple"]
    others = [it for it in tuples if not it.where.startswith(EVENTS_OF_MACHINES)]
    refused = [f"{it.where}: {it.name}" for it in others if it.name not in TUPLES_OF_PROGRAMS]
    assert refused == [], "make it a frozen dataclass with slots, or give a reason in TUPLES_OF_PROGRAMS"
    assert sorted(TUPLES_OF_PROGRAMS) == sorted({it.name for it in others}), (
        "a reason is listed for a class that is gone"
    )


def test_every_dataclass_has_slots() -> None:
    assert [it.where for it in CLASSES if it.form == "dataclass" and not it.arguments.get("slots")] == []
