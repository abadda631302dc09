from __future__ import annotations

import pytest

from pybroker.broker.broker_state import BrokerState
from pybroker.broker.life import Life
from pybroker.broker.shut_down import ShutDown, Stage


class Run:
    """A run whose steps note the state in which they are taken, and one of which fails."""

    def __init__(self, life: Life, failing: str = "") -> None:
        self.life = life
        self.failing = failing
        self.steps: list[tuple[str, BrokerState]] = []
        self.shut_down = ShutDown()

    def _step(self, name: str) -> None:
        self.steps.append((name, self.life.state))
        self.shut_down.add(Stage.LOGS, name, lambda: self.steps.append((f"end of {name}", self.life.state)))
        if name == self.failing:
            raise OSError(name)

    async def listen(self) -> None:
        self._step("listen")

    async def join(self) -> None:
        self._step("join")

    async def serve(self) -> None:
        self._step("serve")

    async def leave(self) -> None:
        self.steps.append(("leave", self.life.state))


STEPS = [("listen", BrokerState.STARTING), ("join", BrokerState.RECOVERY), ("serve", BrokerState.RECOVERY)]


async def test_a_start_takes_every_step_and_a_stop_ends_what_has_begun() -> None:
    life = Life()
    run = Run(life)
    await life.start(run)
    assert (run.steps, life.state) == (STEPS, BrokerState.RUNNING)
    run.steps.clear()
    await life.stop(run)
    ends = [(f"end of {name}", BrokerState.SHUTTING_DOWN) for name, _ in STEPS]
    assert run.steps == [("leave", BrokerState.PENDING_CONTROLLED_SHUTDOWN), *ends]
    assert life.state is BrokerState.NOT_RUNNING


@pytest.mark.parametrize("failing", range(3))
async def test_a_step_that_fails_ends_what_has_begun_and_another_start_may_follow(failing: int) -> None:
    life = Life()
    run = Run(life, STEPS[failing][0])
    with pytest.raises(OSError, match=STEPS[failing][0]):
        await life.start(run)
    begun = STEPS[: failing + 1]
    assert run.steps == [*begun, *((f"end of {name}", BrokerState.SHUTTING_DOWN) for name, _ in begun)]
    assert life.state is BrokerState.NOT_RUNNING
    await life.start(Run(life))
    assert life.state is BrokerState.RUNNING
