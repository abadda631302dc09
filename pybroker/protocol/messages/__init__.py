"""Kafka's messages: one module per API, and under `records` one per record type of internal logs.

Owns the mapping from API keys to declarations. A declaration is imported at its first use, so a process loads only the
APIs that it uses. This also holds for `from pybroker.protocol.messages import create_topics`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from pybroker.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from pybroker.protocol.schema import Message


class _Declarations:
    """Placeholder for the module of one API's messages, which is imported at the first access to an attribute."""

    def __init__(self, full_name: str) -> None:
        self.__name__ = full_name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling read attributes that the module does not have
            raise AttributeError(name)
        found = getattr(import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def __getattr__(name: str) -> _Declarations:
    """Return the placeholder for the module of an API (PEP 562). Raises AttributeError for every other name."""
    if name.upper() not in ApiKey.__members__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _Declarations(f"{__name__}.{name}")


@cache
def request_class(api_key: int) -> type[Message]:
    """Return the request class of `api_key`. Raises `KeyError` if none is declared."""
    return _declared(api_key, "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """Return the response class of `api_key`. Raises `KeyError` if none is declared."""
    return _declared(api_key, "Response")


def _declared(api_key: int, suffix: str) -> type[Message]:
    try:
        module_name = ApiKey(api_key).name.lower()
    except ValueError:
        raise KeyError(f"API key {api_key} is not a key of Kafka's protocol") from None
    full_name = f"{__name__}.{module_name}"
    try:
        module = import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
        raise KeyError(f"API {ApiKey(api_key).name} ({api_key}) is not declared") from None
    class_name = "".join(word.capitalize() for word in module_name.split("_")) + suffix
    return cast("type[Message]", getattr(module, class_name))
