"""A concept has one name in Rust, in Python and in the tests (style 4)."""

from __future__ import annotations

from tests.support import repository

RUST_ONLY = {
    "record": "records never reach Python one by one; `pybroker.protocol` holds messages only",
    "wire": "the hot path of Produce and Fetch; every other message is `pybroker.protocol`'s",
    "sys": "system calls",
    "secure": "the Python side is `pybroker.client.security`",
    "tls": "the Python side is `pybroker.security`",
    "load": "the Python side is `pybench` and `pybroker_spark.load`",
    "quorum": "the Python side is `pybroker.controller.quorum`",
}


def test_every_rust_room_has_a_python_package_of_its_name_or_a_reason() -> None:
    rooms, packages = set(repository.rust_rooms()), set(repository.python_packages())
    assert sorted(rooms - packages - RUST_ONLY.keys()) == []
    assert sorted(RUST_ONLY.keys() - (rooms - packages)) == [], "a reason is listed for a room that needs none"


MIRRORS = {"tests/unit": "pybroker", "tests/spark/unit": "spark/pybroker_spark"}
"""Folders of unit tests, and the package that each mirrors."""


def test_every_unit_test_stands_where_its_module_stands() -> None:
    lost = []
    for tests, package in MIRRORS.items():
        for path in repository.files_under(tests, suffix=".py"):
            *folders, name = path.removeprefix(f"{tests}/").split("/")
            if not name.startswith("test_"):
                continue
            module = "/".join([package, *folders, name.removeprefix("test_").removesuffix(".py")])
            if not {f"{module}.py", f"{module}/__init__.py"} & set(repository.files()):
                lost.append(f"{path}: there is no {module}.py")
    assert lost == []


def test_every_package_says_what_it_is() -> None:
    bare = [
        path
        for path in repository.files_under("pybroker", "spark/pybroker_spark", suffix="__init__.py")
        if len((repository.docstring(path) or "").split()) < 5
    ]
    assert bare == [], "a package's docstring says what it owns and what it must not know (style 22)"


def test_every_rust_module_says_what_it_is() -> None:
    bare = [
        path
        for path in [*repository.rust_sources(), *repository.files_under("native/py/src", suffix=".rs")]
        if not path.endswith("tests.rs") and not repository.text(path).startswith("//! ")
    ]
    assert bare == []
