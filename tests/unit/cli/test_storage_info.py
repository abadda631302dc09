from __future__ import annotations

from pathlib import Path

import pytest

from pybroker.cli.main import main
from pybroker.storage.log_dirs.meta_properties import MetaProperties, write_meta_properties


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "c").write_text(f"log.dirs={tmp_path}/a,{tmp_path}/b\n")
    return tmp_path / "a", tmp_path / "b"


def shown(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    status = main(["storage-info", "-c", str(path.parent / "c")])
    return status, capsys.readouterr().out


def test_directories_that_agree_have_no_problem(paths: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for path in paths:
        path.mkdir()
        write_meta_properties(path, MetaProperties("c", 1, "JEXY6aqzQY-32P5TStzaFg"))
    assert shown(paths[0], capsys) == (
        0,
        (
            f"Found log directories:\n  {paths[0]}\n  {paths[1]}\n\n"
            "Found metadata: {cluster.id=c, directory.id=JEXY6aqzQY-32P5TStzaFg, node.id=1, version=1}\n\n"
        ),
    )


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        (MetaProperties("d", 1, "JEXY6aqzQY-32P5TStzaFg"), "Mismatched cluster IDs between storage directories."),
        (MetaProperties("c", 2, "JEXY6aqzQY-32P5TStzaFg"), "Mismatched node IDs between storage directories."),
    ],
)
def test_directories_that_differ_are_a_problem(
    paths: tuple[Path, Path], second: MetaProperties, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for path, meta in zip(paths, (MetaProperties("c", 1, "JEXY6aqzQY-32P5TStzaFg"), second), strict=True):
        path.mkdir()
        write_meta_properties(path, meta)
    status, out = shown(paths[0], capsys)
    assert (status, out.endswith(f"Found problem:\n  {problem}\n\n")) == (1, True)


def test_what_is_missing_is_named(paths: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    first, second = paths
    assert shown(first, capsys) == (1, f"Found problems:\n  {first} does not exist\n  {second} does not exist\n\n")
    first.touch()
    second.mkdir()
    assert shown(first, capsys) == (
        1,
        (
            f"Found log directory:\n  {second}\n\n"
            f"Found problems:\n  {first} is not a directory\n  {second} is not formatted.\n\n"
        ),
    )


def test_a_file_of_another_kind_is_a_problem(paths: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    for path in paths:
        path.mkdir()
        (path / "meta.properties").write_text("version=0\n")
    status, out = shown(paths[0], capsys)
    assert status == 1
    assert f"Error loading {paths[0]}/meta.properties: " in out
