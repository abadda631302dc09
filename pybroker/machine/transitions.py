"""Transition tables: the named states of a machine as data.

Owns the look-up, which raises on what is not listed. Must not know any particular machine. The table is the only place
where a machine says which state may follow which; `docs/generate.py` draws it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

State = TypeVar("State", bound=Enum)
Trigger = TypeVar("Trigger", bound=Enum)


class TransitionError(Exception):
    """A transition that no table lists; nothing has changed."""


class Transitions(Generic[State, Trigger]):
    """What may follow what: state and trigger to the next state."""

    def __init__(self, name: str, initial: State, table: Mapping[tuple[State, Trigger], State]) -> None:
        """`name` begins the errors; `initial` is where every life begins."""
        self.name = name
        self.initial = initial
        self.table = dict(table)

    def following(self, state: State, trigger: Trigger) -> State:
        """Return the state after `trigger` in `state`; raises `TransitionError` when the table does not list it."""
        try:
            return self.table[state, trigger]
        except KeyError:
            raise TransitionError(f"{self.name}: {trigger.name} cannot happen in state {state.name}") from None

    def unreachable(self) -> list[State]:
        """Return the states that no way leads to from the initial one."""
        reached = {self.initial}
        grew = True
        while grew:
            following = {after for (before, _), after in self.table.items() if before in reached}
            grew = not following <= reached
            reached |= following
        return [state for state in type(self.initial) if state not in reached]
