"""Files are nouns of the domain (style 6), and nothing names the place where it was written."""

from __future__ import annotations

import ast
import re

from tests.support import repository

GRAB_BAGS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "managers", "impl", "stuff", "shared"}
CLASS_NAMES = re.compile(r"(Util|Utils|Helper|Helpers|Manager|Impl|Misc|Common)$")
PLACES = re.compile(
    "|".join(
        [
            r"(?<![\w.}])/(work|farm|root|home|Users)/",
            r"\bhelper session",
            r"\bthe lead\b",
            r"\bCLAUDE|\bAGENTS\.md|\bDEVELOPERS\.md",
            r"\bshared/(design|style|measure|protocol|tools|seeds)",
            r"\bmeasure\.md|\bprotocol\.md|\bcontracts\.md",
        ]
    )
)
TEXTS = (".py", ".pyi", ".rs", ".md", ".toml", ".txt", ".sh", ".c", ".java", ".xml", ".yml", "Makefile", "run")


def test_no_file_or_folder_is_a_grab_bag() -> None:
    bad = [path for path in repository.files() if GRAB_BAGS & {part.split(".")[0].lower() for part in path.split("/")}]
    assert bad == [], "name the file after the thing of the domain that it holds (CONTRIBUTING.md)"


def test_no_class_is_a_manager_or_an_impl() -> None:
    python = [
        f"{path}:{node.lineno} {node.name}"
        for path in repository.files()
        if path.endswith(".py")
        for node in ast.walk(repository.tree(path))
        if isinstance(node, ast.ClassDef) and CLASS_NAMES.search(node.name)
    ]
    rust = [
        f"{path} {match[1]}"
        for path in repository.files()
        if path.endswith(".rs")
        for match in re.finditer(r"^\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait) (\w+)", repository.text(path), re.M)
        if CLASS_NAMES.search(match[1])
    ]
    assert python + rust == []


def test_nothing_names_the_place_where_it_was_written() -> None:
    texts = [path for path in repository.files() if path.endswith(TEXTS) and path != "tests/house/test_names.py"]
    found = [
        f"{path}:{number}: {line.strip()[:120]}"
        for path in texts
        if PLACES.search(repository.text(path))
        for number, line in enumerate(repository.text(path).splitlines(), 1)
        if PLACES.search(line)
    ]
    assert found == []


def test_the_root_stays_a_front_door() -> None:
    entries = {path.split("/")[0] for path in repository.files()}
    assert len(entries) < 20, f"the root has {len(entries)} entries: {sorted(entries)}"
