"""How a token of tasks is renewed: before it ends, again after a failure, and until it ends for good."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import pytest

from pybroker.client import ClientError
from pybroker.client.administration.token_admin import Token
from pybroker_spark import delegation


class Scripted:
    """An admin of whose calls each has its answer, or fails."""

    def __init__(self, *responses: int | ClientError) -> None:
        self.responses = list(responses)

    def __call__(self) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close."""

    def renew_token(self, hmac: bytes) -> int:
        assert hmac == b"s3cret"
        response = self.responses.pop(0)
        if isinstance(response, ClientError):
            raise response
        return response


def test_a_token_is_renewed_until_it_ends_for_good(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(delegation, "_SHORTEST_REST_S", 0.01)
    begun_s = time.time()
    # The brokers' clock is an hour behind this machine's.
    issued = round(begun_s * 1000) - 3_600_000
    token = Token("id", b"s3cret", "User:alice", "User:alice", (), issued, issued + 100, issued + 400)
    admin = Scripted(ClientError("nobody answers"), issued + 200, issued + 400)
    renewal = delegation._Renewal(admin, token, begun_s)
    renewal.thread.start()
    renewal.thread.join(60)
    assert not renewal.thread.is_alive()
    assert admin.responses == []
    assert "delegation token id: not renewed" in caplog.text
    assert "nobody answers" in caplog.text
    assert "ends for good" in caplog.text
    assert "s3cret" not in caplog.text


def test_a_token_that_is_used_no_more_is_not_renewed(caplog: pytest.LogCaptureFixture) -> None:
    now = round(time.time() * 1000)
    token = Token("id", b"s3cret", "User:alice", "User:alice", (), now, now + 60_000, now + 600_000)
    renewal = delegation._Renewal(Scripted(), token, time.time())
    renewal.thread.start()
    renewal.stop()
    assert not renewal.thread.is_alive()
    assert caplog.text == ""
