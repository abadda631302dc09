"""The names of `pybroker.streams` in the tables of docs/guides/streams-moving.md exist."""

from __future__ import annotations

import inspect
import re

import pytest

from pybroker import streams
from pybroker.client.errors import SettingError
from pybroker.streams import testing
from pybroker.streams.application.settings import parse_settings
from pybroker.streams.dsl import options
from pybroker.streams.errors import StreamsError
from tests.support import repository

ROW = re.compile(r"^\| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
OTHERS = {"dataclasses", "msgspec", "pybroker.streams"}
"""Modules in the tables."""


def names() -> list[str]:
    """Return the code of the second column of all tables."""
    cells = ROW.findall(repository.text("docs/guides/streams-moving.md"))
    found = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    return sorted(found - OTHERS)


def known_options() -> set[str]:
    return {key for _, kind in inspect.getmembers(options, inspect.isclass) for key in kind.__annotations__}


def refusal(setting: str) -> str:
    """Return why an application refuses a setting, or its value; an empty text if it does not."""
    try:
        parse_settings({"application.id": "a", "bootstrap.servers": "b:1", setting: "value"})
    except (StreamsError, SettingError) as error:
        return str(error)
    return ""


def test_an_unknown_setting_is_found() -> None:
    assert "unknown settings state.directory" in refusal("state.directory")


def test_the_tables_have_names() -> None:
    assert len(names()) > 60


@pytest.mark.parametrize("name", names())
def test_a_name_of_the_tables_exists(name: str) -> None:
    if name.endswith("="):
        assert name[:-1] in known_options()
    elif "." in name and name.islower():
        assert "unknown" not in refusal(name)
    else:
        owner, _, attribute = name.partition(".")
        found = getattr(streams, owner, None) or getattr(testing, owner)
        assert not attribute or hasattr(found, attribute) or attribute in found.__annotations__
