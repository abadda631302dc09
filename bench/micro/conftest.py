"""Hands the tests each implementation of the kernels in turn."""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import cache
from types import ModuleType

import pytest

LANGUAGES = ["pure_python", "with_numpy", "in_cython", "native"]


@cache
def implementation(language: str) -> ModuleType:
    """Import an implementation; a missing library skips its tests by name, and fails them where CI is set."""
    try:
        return _compiled() if language == "in_cython" else importlib.import_module(f"micro.{language}")
    except ModuleNotFoundError as missing:
        reason = f"{missing.name} is missing: pip install --editable 'bench[micro]'"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


def _compiled() -> ModuleType:
    build = importlib.import_module("micro.build")
    spec = importlib.util.spec_from_file_location("in_cython", build.build())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=LANGUAGES)
def kernels(request: pytest.FixtureRequest) -> ModuleType:
    """One implementation."""
    return implementation(request.param)


@pytest.fixture
def oracle() -> ModuleType:
    """The implementation that the others are compared with."""
    return implementation("pure_python")
