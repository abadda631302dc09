"""Transition tables: the named states of a machine as data.

Owns the lookup, which raises for a transition that is not listed. Must not know any particular machine. The table is
the only definition of a machine's transitions; `docs/generate.py` draws its diagram.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

State = TypeVar("State", bound=Enum)
Trigger = TypeVar("Trigger", bound=Enum)


class TransitionError(Exception):
    """The table does not list the transition. No state has changed."""


class Transitions(Generic[State, Trigger]):
    """The transition table of a machine: maps a state and a trigger to the next state."""

    def __init__(self, name: str, initial: State, table: Mapping[tuple[State, Trigger], State]) -> None:
        """`name` is the prefix of error messages, `initial` the state of a new machine."""
        self.name = name
        self.initial = initial
        self.table = dict(table)

    def following(self, state: State, trigger: Trigger) -> State:
        """Return the state after `trigger` in `state`. Raises `TransitionError` if the table does not list it."""
        try:
            return self.table[state, trigger]
        except KeyError:
            raise TransitionError(f"{self.name}: {trigger.name} cannot happen in state {state.name}") from None

    def unreachable(self) -> list[State]:
        """Return the states that cannot be reached from the initial state."""
        reached = {self.initial}
        grew = True
        while grew:
            following = {after for (before, _), after in self.table.items() if before in reached}
            grew = not following <= reached
            reached |= following
        return [state for state in type(self.initial) if state not in reached]
