from __future__ import annotations

import random

import pytest

from pybroker.broker.shut_down import ShutDown, Stage


async def fail(error: Exception) -> None:
    raise error


async def test_parts_end_by_their_stage_and_within_one_as_they_began() -> None:
    shut_down, ended = ShutDown(), []
    parts = [(stage, number) for stage in Stage for number in range(2)]
    random.shuffle(parts)
    for part in parts:
        shut_down.add(part[0], "a part", lambda part=part: ended.append(part))  # type: ignore[misc]
    await shut_down.run(clean=True)
    assert ended == sorted(parts, key=lambda part: part[0])


@pytest.mark.parametrize(
    ("error", "words", "has_traceback"),
    [
        (OSError(5, "Input/output error"), "the chores did not end cleanly: [Errno 5] Input/output error", False),
        (RuntimeError("a fault"), "the chores did not end cleanly", True),
    ],
)
async def test_a_part_that_fails_is_logged_and_what_ends_after_it_is_not_clean(
    error: Exception, words: str, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    shut_down = ShutDown()
    clean: list[bool] = []
    shut_down.add(Stage.REQUESTS, "requests", lambda: clean.append(shut_down.is_clean))
    shut_down.add(Stage.ROLES, "the chores", lambda: fail(error))
    shut_down.add(Stage.LOGS, "logs", lambda: clean.append(shut_down.is_clean))
    await shut_down.run(clean=True)
    assert clean == [True, False]
    (logged,) = caplog.records
    assert (logged.getMessage(), logged.exc_info is not None) == (words, has_traceback)


async def test_a_part_that_fails_before_it_can_be_awaited_is_logged_by_its_class(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Log:
        def close(self) -> None:
            raise OSError(5, "Input/output error")

    shut_down, log = ShutDown(), Log()
    shut_down.add(Stage.LOGS, log, log.close)
    await shut_down.run(clean=True)
    assert "Log did not end cleanly: [Errno 5] Input/output error" in caplog.text


async def test_the_end_of_a_broker_that_has_not_run_is_not_clean(caplog: pytest.LogCaptureFixture) -> None:
    shut_down = ShutDown()
    clean: list[bool] = []
    shut_down.add(Stage.LOGS, "logs", lambda: clean.append(shut_down.is_clean))
    await shut_down.run(clean=False)
    assert clean == [False]
    assert caplog.records == []


async def test_a_part_ends_once() -> None:
    shut_down, ended = ShutDown(), []
    shut_down.add(Stage.LOGS, "logs", lambda: ended.append("logs"))
    await shut_down.run(clean=True)
    await shut_down.run(clean=True)
    assert ended == ["logs"]
