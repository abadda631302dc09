"""No module needs, directly or by others, a module that needs it: not even for the types of an annotation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support import repository

MODULES = {
    path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
    for path in repository.files_under("pybroker", suffix=".py")
}


def imported(path: str) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in it."""
    for node in ast.walk(repository.tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                full = f"{node.module}.{name.name}"
                yield full if full in MODULES else node.module
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


#: Modules of the native code by crate and path in it; `mod.rs` stands for its folder, `lib.rs` for its crate.
NATIVE = {
    path.removeprefix("native/")
    .replace("/src/", "/")
    .removesuffix(".rs")
    .removesuffix("/mod")
    .removesuffix("/lib"): path
    for path in [*repository.rust_sources(), *repository.files_under("native/py/src", suffix=".rs")]
    if not path.endswith("tests.rs")
}


def branches(tree: str) -> Iterator[str]:
    """Every path of a `use`, its braces taken apart."""
    head, brace, body = tree.partition("{")
    if not brace:
        yield tree.split(" as ")[0].strip()
        return
    depth, part = 0, ""
    for letter in body.strip().removesuffix("}") + ",":
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield from branches(head.strip() + part.strip()) if part.strip() else ()
            part = ""
        else:
            part += letter


def used_natively(module: str) -> Iterator[str]:
    """The modules that a native file names, by `use` or in a path."""
    text = re.sub(r"//.*", "", repository.text(NATIVE[module]).split("#[cfg(test)]\nmod tests {")[0])
    paths = [path for tree in re.findall(r"\buse ([^;]+);", text) for path in branches(tree)]
    for path in paths + re.findall(r"\b(?:crate|super)(?:::\w+)+", text):
        words = path.split("::")
        above = 0 if words[0] == "crate" else words.count("super")
        if words[0] not in ("crate", "self", "super"):
            continue
        here = module.split("/")[: 1 if words[0] == "crate" else None]
        parts = here[: len(here) - above] + words[max(above, 1) :]
        known = ("/".join(parts[:end]) for end in range(len(parts), 0, -1))
        yield from [name for name in known if name in NATIVE][:1]


def in_circles(uses: dict[str, set[str]]) -> set[str]:
    """What is left when everything has gone that uses nothing which is left, or that nothing left uses."""
    left = {module: used & uses.keys() - {module} for module, used in uses.items()}
    while True:
        used_by_others = {used for module in left for used in left[module]}
        gone = {module for module, used in left.items() if not used or module not in used_by_others}
        if not gone:
            return set(left)
        left = {module: used - gone for module, used in left.items() if module not in gone}


def test_a_circle_is_found() -> None:
    assert in_circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == {"b", "c"}


def test_python_has_no_circle() -> None:
    assert in_circles({module: set(imported(path)) for module, path in MODULES.items()}) == set()


def test_native_code_has_no_circle() -> None:
    assert in_circles({module: set(used_natively(module)) for module in NATIVE}) == set()
