from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pybroker.broker.lifecycle import (
    MEMBERSHIP,
    TRANSITIONS,
    Lifecycle,
    LifecycleSettings,
    Membership,
    MembershipTrigger,
    RequestedState,
)
from pybroker.machine.transitions import TransitionError
from tests.transcripts.transcript import check_transcript

SETTINGS = LifecycleSettings(heartbeat_interval_ms=2000, registration_timeout_ms=60_000)


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(Membership, MembershipTrigger)))
def test_only_what_the_table_lists_may_happen(state: Membership, trigger: MembershipTrigger) -> None:
    if (state, trigger) in TRANSITIONS:
        assert MEMBERSHIP.following(state, trigger) is TRANSITIONS[state, trigger]
    else:
        with pytest.raises(TransitionError):
            MEMBERSHIP.following(state, trigger)


def test_every_state_can_be_reached_and_all_but_the_last_left() -> None:
    assert MEMBERSHIP.unreachable() == []
    assert {state for state, _ in TRANSITIONS} == set(Membership) - {Membership.LEFT}


class Speaker:
    """One broker's life, moved by the words of a transcript."""

    def __init__(self) -> None:
        self.now = 0
        self.life = Lifecycle(SETTINGS, self.now)

    def report(self, command: str) -> str:
        """Do what a command says; return the state, what the next heartbeat wants, and the pause before it."""
        word, *rest = command.split()
        pause = getattr(self, f"_{word}")(*rest)
        requested_state = (
            ", ".join(name for name, wanted in self.life.requested_state._asdict().items() if wanted) or "nothing"
        )
        return f"{self.life.state.name} at {self.now} ms wants {requested_state}" + (
            "" if pause == "" else f"; pause {pause} ms"
        )

    def _start(self) -> str:
        self.__init__()  # type: ignore[misc]
        return ""

    def _wait(self, ms: str) -> str:
        self.now += int(ms)
        return ""

    def _registered(self) -> str:
        self.life.step_registered()
        return ""

    def _unregistered(self) -> int | None:
        return self.life.step_unregistered(self.now)

    def _opened(self) -> str:
        self.life.step_opened()
        return ""

    def _leave(self) -> str:
        self.life.step_leave(self.now)
        return ""

    def _silence(self) -> int | None:
        return self.life.step_unanswered(self.now)

    def _respond(self, *words: str) -> int | None:
        """`fenced` or `unfenced`, `stop` where it may; `late` for the answer to what was wanted before."""
        sent = RequestedState(want_fence=True, want_shut_down=False) if "late" in words else self.life.requested_state
        return self.life.step_responded(sent, self.now, is_fenced="fenced" in words, should_shut_down="stop" in words)


def test_transcript_of_a_brokers_life(request: pytest.FixtureRequest) -> None:
    path = Path(__file__).parents[2] / "transcripts" / "broker_life.txt"
    check_transcript(path, Speaker().report, rewrite=request.config.getoption("--rewrite"))
