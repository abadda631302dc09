"""Kafka's messages: one module per API, and under `records` one per record of our internal logs.

Owns the way from an API key to its declarations, which are imported when first asked for: a broker that never sees an
API never loads it. The pipeline asks here with the key that it found in a request's header; a program that has
`from pybroker.protocol.messages import create_topics` pays for what it uses of that.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from pybroker.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message


class _Declarations:
    """Stands for the module of one API's messages, which is imported when something of it is first asked for."""

    def __init__(self, full_name: str) -> None:
        self.__name__ = full_name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pickles look for is none of the module's
            raise AttributeError(name)
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def __getattr__(name: str) -> _Declarations:
    """Return what stands for the module of an API (PEP 562); raises AttributeError for every other name."""
    if name.upper() not in ApiKey.__members__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Declarations(f"{__name__}.{name}")


@cache
def request_class(api_key: int) -> type[Message]:
    """Find the request declared for `api_key`; raises `KeyError` where there is none."""
    return _declared(api_key, "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """Find the response declared for `api_key`; raises `KeyError` where there is none."""
    return _declared(api_key, "Response")


def _declared(api_key: int, suffix: str) -> type[Message]:
    try:
        module_name = ApiKey(api_key).name.lower()
    except ValueError:
        raise KeyError(f"API key {api_key} is not one of Kafka's") from None
    full_name = f"{__name__}.{module_name}"
    try:
        module = import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
        raise KeyError(f"API {ApiKey(api_key).name} ({api_key}) is not declared") from None
    class_name = "".join(word.capitalize() for word in module_name.split("_")) + suffix
    return cast("type[Message]", getattr(module, class_name))
