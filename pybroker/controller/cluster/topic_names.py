"""Topic names: validity and collisions (KAFKA-1507's rules, `org.apache.kafka.common.internals.Topic`).

Functions of strings. Metric names replace '.' by '_', so two topics that differ only in these characters would share
their metrics.
"""

from __future__ import annotations

import re

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_fault(name: str) -> str | None:
    """Return what is wrong with a topic's name, None if it is valid; the messages are Kafka's."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None


def may_collide(name: str) -> bool:
    """Return whether another name can collide with this one."""
    return "." in name or "_" in name


def metric_name(name: str) -> str:
    """Return the topic's name in metrics; two names collide if these are equal."""
    return name.replace(".", "_")
