"""APIs and errors by Kafka's names, as tests write them.

Owns the suggestions for unknown names. Must not know the use of a name.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pybroker.handlers.registry import registered_apis
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from pybroker.handlers.registry import RegisteredApi

# The traceback of an invalid call ends at the line of the test.
__tracebackhide__ = True


def api_named(name: str) -> RegisteredApi:
    """Return an API by Kafka's name.

    Raises ValueError with the nearest name, and TypeError for a value that is no text.
    """
    if not isinstance(name, str):
        raise TypeError(f"api={name!r}: expected an API's name such as 'Produce'")
    by_name = {api.name.lower(): api for api in registered_apis().values()}
    api = by_name.get(name.lower().removesuffix("request"))
    if api is None:
        raise ValueError(f"no API has the name {name!r}{_nearest(name, [api.name for api in by_name.values()])}")
    return api


def code_named(code: ErrorCode | int | str) -> ErrorCode:
    """Return an error code by Kafka's number or name. Raises ValueError for an unknown one."""
    if isinstance(code, int):
        try:
            return ErrorCode(code)
        except ValueError:
            raise ValueError(f"Kafka has no error code {code}") from None
    found = ErrorCode.__members__.get(code.upper())
    if found is None:
        raise ValueError(f"Kafka has no error named {code!r}{_nearest(code.upper(), list(ErrorCode.__members__))}")
    return found


def _nearest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1, 0.5)
    return f"; the nearest is {near[0]!r}" if near else ""
