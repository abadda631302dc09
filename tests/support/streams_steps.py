"""Topologies as data, which Kafka's test driver and ours both run: the same steps, inputs and results.

A topology is a list of steps, each a dict with `id`, `op`, and `on`: the id of the step that it continues. `with` is
the id of the other side of a join or merge. Operations have the names of the DSL; those that begin with `api_` extend
the built topology through the Processor API. Functions are names of `streams_functions.py`: `fn`, `selector`,
`extractor`, `subtractor`, `merger`. Options are the keyword arguments of the DSL: `name`, `store`, `caching`,
`logging`, `retention`, `key_serde` and so on. Serdes are names of `SERDES`. All times are in milliseconds.

An input is a dict with `topic`, `key`, `value` (base64 or None), `timestamp` and `headers`, or with `advance_ms`, which
advances the wall clock.
"""

from __future__ import annotations

import base64
from typing import Any

Step = dict[str, Any]
SOURCE_OPERATIONS = ("stream", "table", "global_table", "state_store", "global_store")


def op(operation: str, on: str | None = None, **options: Any) -> Step:
    """Return a step without an id. A trailing underscore of an option is removed, as in `with_`."""
    step = {"op": operation, **{name.rstrip("_"): value for name, value in options.items()}}
    return step if on is None else {**step, "on": on}


def steps(*given: Step) -> list[Step]:
    """Return steps with ids. A step without `on` that is not a source continues the step before it."""
    result: list[Step] = []
    for number, step in enumerate(given, 1):
        whole = {"id": f"s{number}", **step}
        if "on" not in step and step["op"] not in SOURCE_OPERATIONS and not step["op"].startswith("api_"):
            whole["on"] = result[-1]["id"]
        result.append(whole)
    return result


def decoded(data: str | None) -> bytes | None:
    """Return the bytes of base64 text."""
    return None if data is None else base64.b64decode(data)


def encoded(data: bytes | None) -> str | None:
    """Return bytes as base64 text."""
    return None if data is None else base64.b64encode(data).decode()
