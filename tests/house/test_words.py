"""Words that need no key: Kafka's terms and plain English, never a private metaphor (CONTRIBUTING.md, Words)."""

from __future__ import annotations

import re

from tests.support import repository

TEXTS = (".py", ".pyi", ".rs", ".md", ".toml", ".c", ".java", "Makefile")

SAID = "set, complete, report, return, log, receive, callback"
#: A word as it was, and what stands in its place.
REPLACED = {
    r"(?i)\blanes?\b": "hot path (Produce and Fetch), partition queue (the producer), opening queue (starts)",
    r"(?i)\bundecided|\b(?:take|taken|takes|taking|took) up\b(?! to)|take_up": "unresolved, retry",
    r"(?i)unfold": "decompress",
    r"(?i)\b(?:told|tells?|telling|hears?|heard|hearing)\b": SAID,
    r"\b(?:told|tell|hear|heard)_|_(?:told|tells?|heard|hear)\b": SAID,
    r"(?i)\bwhoever\b": "the caller, the client: the subject that is meant",
    r"\bled\b": "has a leader, leader of",
    r"(?i)\bha(?:s|ve) these too\b": "a plain sentence",
}
LOOK = {r"(?i)\b_?look(?:s|ed|ing)?_(?!up)|_look(?:s|ed|ing)?\b(?!_)|\btwo looks\b": "poll, check, probe, inspect"}
#: The same, where a word means something else in other rooms.
REPLACED_IN = {
    "pybroker/": LOOK,
    "spark/": LOOK,
    "native/net/src/": {r"_elsewhere\b|\belsewhere_|mod elsewhere\b": "cross-thread"},
    "pybroker/client/": {
        r"\bPlaces\b|\b_?Place\b": "subscription state, partition position",
        r"\b\w*Link\b|\b_?links?\b": "membership driver",
        r"\bTurn\b|turn_done": "rebalance step",
    },
}
#: Where a word stays, and why.
KEPT = {
    ("bench/micro/with_numpy.py", "lane"): "the lanes of a vector register",
    ("tests/house/test_words.py", ""): "this table",
}


def words_of(path: str) -> dict[str, str]:
    """Every pattern that holds for a file, with what replaces it."""
    held = [words for folder, words in REPLACED_IN.items() if path.startswith(folder)]
    return {pattern: instead for words in (REPLACED, *held) for pattern, instead in words.items()}


def replaceable(path: str) -> list[str]:
    """The words of a file that something replaces: where each is, and what to write."""
    text = repository.text(path)
    kept = [word for (where, word) in KEPT if where == path]
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}: write {instead}"
        for pattern, instead in words_of(path).items()
        for match in re.finditer(pattern, text)
        if not any(word in match[0].lower() for word in kept)
    ]


def test_every_word_is_the_fields_own() -> None:
    assert [found for path in repository.files() if path.endswith(TEXTS) for found in replaceable(path)] == []


def test_no_exception_outlives_its_reason() -> None:
    assert [where for where, word in KEPT if word not in repository.text(where).lower()] == []
