from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pybroker.client

_STATED = {
    (node.module, alias.name)
    for block in ast.parse(Path(pybroker.client.__file__).read_text(encoding="utf-8")).body
    if isinstance(block, ast.If)
    for node in block.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
"""Where type checkers find the names."""


def test_names_come_from_where_type_checkers_find_them() -> None:
    homes = pybroker.client._HOMES
    assert {(home, name) for home, names in homes.items() for name in names} == _STATED
    assert sorted(name for _, name in _STATED) == sorted(pybroker.client.__all__)


@pytest.mark.parametrize("name", pybroker.client.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(pybroker.client, name) is not None
    assert name in dir(pybroker.client)


def test_another_name_is_an_attribute_error_that_says_which() -> None:
    with pytest.raises(AttributeError, match=r"module 'pybroker\.client' has no attribute 'Podcaster'"):
        pybroker.client.Podcaster  # noqa: B018


def test_what_a_broker_needs_of_clients_imports_no_client() -> None:
    code = "import sys, pybroker.client.network.connection; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {
        "pybroker.client.consuming.consumer",
        "pybroker.client.administration.async_admin",
    } & set(ast.literal_eval(done.stdout))
