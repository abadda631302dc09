from __future__ import annotations

import asyncio

import pytest

from pybroker.broker import renewal
from pybroker.broker.registration import RegistrationRefusedError
from pybroker.broker.renewal import Renewal
from pybroker.protocol.errors import ErrorCode


def test_it_is_tried_until_the_controller_answers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(renewal, "_PAUSE_S", 0)
    tries = 0

    async def register() -> None:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionError("nobody answers")

    async def run() -> None:
        work = Renewal(register, ConnectionError)
        work.want()
        await work.done()
        work.want()
        work.want()
        await work.done()

    asyncio.run(run())
    assert tries == 4
    assert caplog.messages == ["Failed to register the changed listeners: nobody answers; retrying"]


def test_what_changes_meanwhile_is_registered_after_it() -> None:
    tries = 0

    async def run() -> None:
        async def register() -> None:
            nonlocal tries
            tries += 1
            if tries == 1:
                work.want()

        work = Renewal(register, ConnectionError)
        work.want()
        await work.done()
        await work.stop()

    asyncio.run(run())
    assert tries == 2


def test_a_refusal_is_said_and_a_stop_ends_the_tries(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse() -> None:
        raise RegistrationRefusedError("no", ErrorCode.INVALID_REGISTRATION)

    async def fail() -> None:
        raise ConnectionError("nobody answers")

    async def run() -> None:
        refused, unanswered = Renewal(refuse, ConnectionError), Renewal(fail, ConnectionError)
        refused.want()
        await refused.done()
        unanswered.want()
        await unanswered.stop()

    asyncio.run(run())
    assert "Failed to register the changed listeners: no" in caplog.text
