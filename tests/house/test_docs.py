"""Pages made from code are as the code is, and prose about structure names things that exist (style 9, 17, 23)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support import repository
from tests.support.repository import ROOT

ARCHITECTURE = "ARCHITECTURE.md"
FOLDERS = ("native", "pybroker", "bench", "spark", "tests", "docs", "changes", ".ci")
PATH = re.compile(rf"(?:{'|'.join(re.escape(folder) for folder in FOLDERS)})/[\w./*<>-]*")
REFERENCE = re.compile(r"`([\w./-]+\.(?:py|rs)):([A-Za-z_][\w.:]*)`")
PAGES = ["README.md", "CONTRIBUTING.md", ARCHITECTURE, *repository.files_under("docs", suffix=".md")]


def test_the_reference_is_as_the_code_is() -> None:
    ran = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    missing = []
    for quoted in re.findall(r"`([^`\n]+)`", repository.text(page)):
        for path in PATH.findall(quoted):
            named = re.sub(r":.*$", "", path).rstrip("/.")
            if "<" in named or not PATH.fullmatch(quoted.split(":")[0]):
                continue  # a pattern to fill in, or a word of a command line
            if not list(ROOT.glob(named)):
                missing.append(path)
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    broken = [
        target
        for target in re.findall(r"\]\(([^)#\s]+)", repository.text(page))
        if "://" not in target and not (folder / target).exists()
    ]
    assert broken == []


def test_the_architecture_names_every_package_and_every_rust_room() -> None:
    page = repository.text(ARCHITECTURE)
    rooms = [f"pybroker/{package}" for package in repository.python_packages()]
    rooms += [f"native/{room}/src" for room in repository.rust_rooms()]
    unnamed = [room for room in rooms if room not in page]
    assert unnamed == []


def test_every_function_that_the_architecture_refers_to_exists() -> None:
    references = REFERENCE.findall(repository.text(ARCHITECTURE))
    assert references, "the life of a produce and of a fetch is described with `file:function` at each step"
    broken = [f"{path}:{name}" for path, name in references if not defines(path, name)]
    assert broken == []


def defines(path: str, name: str) -> bool:
    """Whether a file defines a function, method or class by the last part of a dotted name."""
    if not (ROOT / path).is_file():
        return False
    last = re.split(r"[.:]+", name)[-1]
    keyword = r"(?:def|class)" if path.endswith(".py") else r"(?:fn|struct|enum|trait|type)"
    source = repository.text(path)
    return bool(re.search(rf"\b{keyword} {last}\b", source) or re.search(rf"^{last} *[:=]", source, re.M))


def test_every_decision_is_one_page_with_the_four_parts() -> None:
    decisions = repository.files_under("docs/adr", suffix=".md")
    numbers = [int(re.match(r"docs/adr/(\d{4})-[a-z0-9-]+\.md", path)[1]) for path in decisions]  # type: ignore[index]
    assert len(set(numbers)) == len(numbers)
    lacking = [
        f"{path}: {part}"
        for path in decisions
        for part in ("Status:", "## Context", "## Decision", "## Consequences")
        if part not in repository.text(path)
    ]
    assert lacking == []


def test_every_waiting_change_says_its_kind() -> None:
    names = [path.removeprefix("changes/") for path in repository.files_under("changes", suffix=".md")]
    kinds = r"[a-z0-9-]+\.(added|changed|fixed|removed|faster)\.md"
    assert [name for name in names if name != "README.md" and not re.fullmatch(kinds, name)] == []
