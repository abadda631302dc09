"""The native boundary (style 13-18): a core without Python, bindings that only convert, unsafe code that is argued."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.support import repository
from tests.support.repository import ROOT

BINDING_LINES = 200
#: Binding files over the limit: path -> (lines allowed, reason). This list may only shrink.
LONG_BINDINGS: dict[str, tuple[int, str]] = {
    "native/py/src/net/data_plane.rs": (215, "one class, whose methods pass on what the two planes say to each other"),
}


def test_the_core_does_not_know_python() -> None:
    packages = [f"--package=pybroker-{room}" for room in repository.rust_rooms()]
    listed = subprocess.run(
        ["cargo", "tree", *packages, "--edges", "normal,build,dev", "--prefix", "none"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "raft" in listed.stdout
    assert "pyo3" not in listed.stdout


@pytest.mark.parametrize("path", repository.files_under("native/py/src", suffix=".rs"))
def test_a_binding_file_stays_short(path: str) -> None:
    lines = len(repository.text(path).splitlines())
    allowed, _reason = LONG_BINDINGS.get(path, (BINDING_LINES, ""))
    assert lines <= allowed, f"{path} has {lines} lines: bindings convert, and nothing else"
    assert path not in LONG_BINDINGS or lines > BINDING_LINES, f"{path} is short now: take it off the list"


ITEM = re.compile(r"^\s*pub (?:const |async |unsafe )*(?:fn(?! new\b)|struct|enum|trait|type|static) \w+")


@pytest.mark.parametrize("room", repository.rust_rooms())
def test_every_public_item_has_a_docstring(room: str) -> None:
    """Fields, variants, constants and functions of one line are where their name does not say it: no lint can know."""
    bare = []
    for path in repository.rust_sources():
        if not path.startswith(f"native/{room}/") or path.endswith("tests.rs"):
            continue
        lines = repository.text(path).split("#[cfg(test)]\nmod tests {")[0].splitlines()
        for number, line in enumerate(lines):
            above = number - 1
            while lines[above].lstrip().startswith("#[") and above > 0:
                above -= 1
            one_line = line.endswith("{") and lines[number + 2 : number + 3] == [
                f"{line[: len(line) - len(line.lstrip())]}}}"
            ]
            if ITEM.match(line) and not one_line and not lines[above].lstrip().startswith("///"):
                bare.append(f"{path}:{number + 1}: {line.strip()}")
    assert bare == []


#: The core's sources, and those of its face to Python.
SOURCES = [*repository.rust_sources(), *repository.files_under("native/py/src", suffix=".rs")]
TUPLE_PARAMETER = re.compile(r"(?:^\s*|[(,] ?)\((?:\w+, )+\w+\): \(", re.M)


def test_parameters_that_travel_together_are_a_type() -> None:
    found = [
        f"{path}: {match[0].strip()}" for path in SOURCES for match in TUPLE_PARAMETER.finditer(repository.text(path))
    ]
    assert found == [], "give the tuple a name"


DOCUMENTED = re.compile(r"^ +/// (.+)\n +(?:pub(?:\(\w+\))? )?(\w+)(?::|,|\(| \{|$)", re.M)
FILLERS = {"a", "an", "the", "its", "of", "it", "is", "in", "that", "to", "this"}


def words(text: str) -> set[str]:
    """The words of a name or a sentence, without case, fillers and the s of a plural."""
    parts = re.findall(r"[A-Za-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).replace("_", " "))
    return {part.lower().rstrip("s") for part in parts} - FILLERS


def test_no_field_or_variant_has_a_docstring_that_only_repeats_its_name() -> None:
    idle = [
        f"{path}: {match[2]}: {match[1]}"
        for path in SOURCES
        for match in DOCUMENTED.finditer(repository.text(path))
        if words(match[1]) <= words(match[2])
        and not match.string[: match.start()].rstrip().rsplit("\n", 1)[-1].lstrip().startswith("///")
    ]
    assert idle == []


def test_every_python_class_of_the_extension_is_frozen() -> None:
    thawed = [
        f"{path}: {match[0]}"
        for path in repository.files_under("native/py/src", suffix=".rs")
        for match in re.finditer(r"#\[pyclass(\([^\]]*\))?\]", repository.text(path))
        if "frozen" not in match[0]
    ]
    assert thawed == []


def test_configuration_has_no_default_in_rust() -> None:
    found = []
    for path in repository.files_under("native", suffix=".rs"):
        source = repository.text(path)
        found += [f"{path}: {match[0]}" for match in re.finditer(r"impl Default for \w*(?:Config|Settings)\b", source)]
        found += [
            f"{path}: {match[2]}"
            for match in re.finditer(r"#\[derive\(([^)]*)\)\][^;{]*?struct (\w*(?:Config|Settings))\b", source)
            if "Default" in match[1]
        ]
    assert found == [], "a default has one home: pybroker/config (style 17)"


def test_unsafe_lives_only_where_the_architecture_says() -> None:
    opted_in = {
        path
        for path in repository.files_under("native", suffix=".rs")
        if re.search(r"#!?\[(?:allow|expect)\([^)]*unsafe_code", repository.text(path))
    }
    named = set(re.findall(r"`(native/[\w/]+\.rs)`", repository.section("ARCHITECTURE.md", "Where unsafe lives")))
    assert opted_in == named


def test_only_gateways_import_the_extension() -> None:
    climbing = [
        f"{path}:{line}"
        for path in repository.files_under("pybroker", "bench", "spark", suffix=".py")
        if not path.endswith("/native.py")
        for line, name in repository.imported_modules(path)
        if name.startswith("pybroker._native")
    ]
    assert climbing == [], "take the type from the package's native.py (style 16)"
