"""Identifiers are Kafka's terms too: no word of the left column names a thing (CONTRIBUTING.md, Words)."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

from tests.support import repository

#: A word, and what to write.
REPLACED = {
    "answer": "response, respond; reply in a state machine",
    "answers": "responses",
    "answered": "responded, completed",
    "answering": "responding",
    "ask": "query, request, send",
    "asks": "queries, requests, needs",
    "asked": "requested",
    "asking": "querying",
    "guest": "what it is: an announced replica, an adopted processor",
    "guests": "what they are",
    "upkeep": "maintenance",
    "alarm": "timer",
    "chore": "task",
    "chores": "background tasks",
    "parked": "delayed",
    "said": "reported",
    "say": "report",
    "says": "reports",
    "settle": "complete",
    "settled": "completed",
    "verdict": "decision, authorization",
    "wish": "mode, subscription, requested state",
    "wishes": "subscriptions",
}
#: Comments and strings of Rust.
NO_CODE = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"', re.DOTALL)


def identifiers(path: str) -> Iterator[str]:
    """Yield the identifiers of one file. The names of tests are sentences, and left out."""
    text = repository.text(path)
    if path.endswith(".rs"):
        yield from re.findall(r"[A-Za-z_]\w*", NO_CODE.sub("", text))
    else:
        yield from (token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == 1)


def words(identifier: str) -> list[str]:
    """Return the words of an identifier, in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def test_identifiers_are_of_the_field() -> None:
    folders = ["pybroker", "spark/pybroker_spark", "native"]
    paths = [*repository.files_under(*folders, suffix=".py"), *repository.files_under(*folders, suffix=".rs")]
    found = {
        f"{path}: {identifier}: write {REPLACED[word]}"
        for path in paths
        for identifier in identifiers(path)
        if identifier.count("_") <= 4
        for word in words(identifier)
        if word in REPLACED
    }
    assert sorted(found) == []
