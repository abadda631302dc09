"""What a start has left out is imported after it."""

from __future__ import annotations

import asyncio
import errno
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from pybroker.node import late_imports
from pybroker.node.late_imports import LateImports, late_modules


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Three modules that nobody has imported."""
    names = ["late_one", "late_two", "late_three"]
    for name in names:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(late_imports, "_FIRST_S", 0)
    yield names
    for name in names:
        sys.modules.pop(name, None)


def test_modules_are_imported_one_after_the_other(modules: list[str]) -> None:
    async def run() -> None:
        imports = LateImports(modules)
        assert not sys.modules.keys() & set(modules)
        await imports.finished()
        imports.end()

    asyncio.run(run())
    assert sys.modules.keys() >= set(modules)


def test_a_module_that_cannot_be_read_now_is_read_later(modules: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def read(name: str) -> ModuleType:
        if failures:
            raise failures.pop()
        return import_module(name)

    failures = [OSError(errno.EMFILE, "Too many open files")] * 2
    monkeypatch.setattr(late_imports, "import_module", read)
    monkeypatch.setattr(late_imports, "_AGAIN_S", 0)

    async def run() -> None:
        await LateImports(modules).finished()

    asyncio.run(run())
    assert sys.modules.keys() >= set(modules)
    assert failures == []


def test_a_module_that_is_gone_is_said_and_the_others_are_imported(
    modules: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        await LateImports(["late_none", *modules]).finished()

    asyncio.run(run())
    assert sys.modules.keys() >= set(modules)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "late_none: the installed package was changed while it ran" in caplog.text


def test_a_node_that_stops_imports_no_more(modules: list[str]) -> None:
    async def run() -> None:
        LateImports(modules).end()

    asyncio.run(run())
    assert not sys.modules.keys() & set(modules)


def test_a_node_needs_the_handlers_of_its_roles() -> None:
    broker, controller = late_modules(broker=True, controller=False), late_modules(broker=False, controller=True)
    assert "pybroker.handlers.offset_commit" in broker
    assert "pybroker.handlers.offset_commit" not in controller
    assert "pybroker.handlers.broker_registration" in controller
    assert set(late_modules(broker=True, controller=True)) == {*broker, *controller}
