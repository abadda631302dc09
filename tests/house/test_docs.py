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
PICTURE = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
BOX = re.compile(r"\[\"([^\"]+)\"\]")
WAY = re.compile(r"^## (The way of [^\n]+)\n(.*?)(?=^## |\Z)", re.M | re.S)
RESERVED = "Reserved rooms"
DECISIONS = "docs/adr/README.md"
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ARCHITECTURE, *repository.files_under("docs", suffix=".md")]


def test_the_reference_is_as_the_code_is() -> None:
    ran = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_exists(page: str) -> None:
    missing = []
    text = repository.text(page)
    if page == ARCHITECTURE:
        text = text.replace(repository.section(ARCHITECTURE, RESERVED), "")
    for quoted in re.findall(r"`([^`\n]+)`", text):
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


def test_the_index_of_guides_has_every_guide() -> None:
    index = "docs/guides/README.md"
    linked = {f"docs/guides/{target}" for target in re.findall(r"\]\(([\w-]+\.md)", repository.text(index))}
    assert linked == {page for page in repository.files_under("docs/guides", suffix=".md") if page != index}
    assert index in repository.text("README.md")


def file_map_rows() -> list[tuple[str, str]]:
    """Both columns of the file map's tables."""
    page = repository.text(ARCHITECTURE)
    tables = page[page.index("\n## File map\n") : page.index(f"\n## {RESERVED}\n")]
    return re.findall(r"^\| (`[^|]+) \| (.+) \|$", tables, re.M)


def file_map() -> set[str]:
    """What the first column of the file map's tables names."""
    return {path for paths, _ in file_map_rows() for path in re.findall(r"`([^`]+)`", paths)}


def test_a_room_of_the_file_map_has_one_line() -> None:
    long = {paths: len(owns.split()) for paths, owns in file_map_rows() if len(owns.split()) > 20}
    assert long == {}, "at most 20 words: what else there is goes to the room's page in docs/rooms"


def test_the_file_map_has_every_room_and_nothing_else() -> None:
    rooms = {f"pybroker/{package}" for package in repository.python_packages()}
    rooms |= {f"native/{room}/src" for room in repository.rust_rooms()}
    rooms |= {"/".join(path.split("/")[:3]) for path in repository.files_under("spark/pybroker_spark", suffix=".py")}
    rooms -= {"spark/pybroker_spark/__init__.py"}
    mapped = file_map()
    assert sorted(rooms - mapped) == []
    assert sorted(path for path in mapped if not (ROOT / path).exists()) == []


def test_a_reserved_room_is_not_there_yet_and_its_neighbours_are() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", repository.section(ARCHITECTURE, RESERVED), re.M)
    reserved = {path for _what, where, _beside in rows for path in PATH.findall(where)}
    assert len(reserved) >= len(rows) / 2, "the table has lost its paths"
    built = sorted(path for path in reserved if (ROOT / path).exists())
    assert built == [], "it is there: describe it in the file map, and take it out of the reserved rooms"
    lost = [path for *_, beside in rows for path in PATH.findall(beside) if not (ROOT / path).exists()]
    assert lost == []


def test_the_architecture_is_read_in_one_sitting() -> None:
    lines = len(repository.text(ARCHITECTURE).splitlines())
    assert lines < 300, f"{lines} lines: what concerns one room goes to its page in docs/rooms"


@pytest.mark.parametrize("page", PAGES)
def test_every_function_that_a_page_refers_to_exists(page: str) -> None:
    text = repository.text(page)
    references = REFERENCE.findall(text)
    for picture in PICTURE.findall(text):
        for box in BOX.findall(picture):
            path, _, name = box.replace("<br/>", "").partition(":")
            references += [(path, name)] if path.endswith((".py", ".rs")) else []
    broken = [f"{path}:{name}" for path, name in references if not defines(path, name)]
    assert broken == []


@pytest.mark.parametrize(
    ("page", "way"), [(page, way) for page in PAGES for way, _ in WAY.findall(repository.text(page))]
)
def test_every_way_has_a_picture_of_functions(page: str, way: str) -> None:
    (picture,) = PICTURE.findall(repository.section(page, way))
    assert len(re.findall(r"\.(?:py|rs):\w", picture)) >= 4
    boxes = set(re.findall(r"^ +(\w+)\[", picture, re.M))
    arrows = [line for line in picture.splitlines() if "-->" in line or "-.->" in line]
    joined = {end for line in arrows for end in re.split(r" *<?(?:-->|-\.->)(?:\|[^|]*\|)? *", line.strip())}
    assert joined == boxes, "an arrow joins boxes that the picture has, and no box stands alone"


def test_the_ways_of_a_record_are_on_the_first_page() -> None:
    ways = [way for way, _ in WAY.findall(repository.text(ARCHITECTURE))]
    assert ways[:2] == ["The way of a produce", "The way of a fetch"]


def defines(path: str, name: str) -> bool:
    """Whether a file defines a function, method or class by the last part of a dotted name."""
    if not (ROOT / path).is_file():
        return False
    last = re.split(r"[.:]+", name)[-1]
    keyword = r"(?:def|class)" if path.endswith(".py") else r"(?:fn|struct|enum|trait|type)"
    source = repository.text(path)
    return bool(re.search(rf"\b{keyword} {last}\b", source) or re.search(rf"^{last} *[:=]", source, re.M))


def test_every_decision_is_one_page_with_the_four_parts() -> None:
    decisions = [path for path in repository.files_under("docs/adr", suffix=".md") if path != DECISIONS]
    numbers = [int(re.match(r"docs/adr/(\d{4})-[a-z0-9-]+\.md", path)[1]) for path in decisions]  # type: ignore[index]
    assert len(set(numbers)) == len(numbers)
    lacking = [
        f"{path}: {part}"
        for path in decisions
        for part in ("Status:", "## Context", "## Decision", "## Consequences")
        if part not in repository.text(path)
    ]
    assert lacking == []


def test_the_index_of_decisions_has_each_with_its_title_and_status() -> None:
    rows = []
    for path in repository.files_under("docs/adr", suffix=".md"):
        if path == DECISIONS:
            continue
        name, text = path.removeprefix("docs/adr/"), repository.text(path)
        title = re.match(rf"# {name[:4]}: ([A-Z`].+)\n", text)
        status = re.search(r"^Status: (accepted|superseded by \[\d{4}\]\([^)]+\))", text, re.M)
        assert title, f"{path}: expected '# {name[:4]}: <what is decided>' in the first line"
        assert status, f"{path}: expected 'Status: accepted' or 'Status: superseded by [0001](...)'"
        rows.append(f"| [{name[:4]}]({name}) | {title[1]} | {status[1]} |")
    indexed = re.findall(r"^\| \[\d.*$", repository.text(DECISIONS), re.M)
    assert sorted(indexed) == rows


def test_every_waiting_change_says_its_kind() -> None:
    names = [path.removeprefix("changes/") for path in repository.files_under("changes", suffix=".md")]
    kinds = r"[a-z0-9-]+\.(added|changed|fixed|removed|faster)\.md"
    assert [name for name in names if name != "README.md" and not re.fullmatch(kinds, name)] == []
