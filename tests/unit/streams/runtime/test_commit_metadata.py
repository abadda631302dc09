from __future__ import annotations

import base64
import struct

import pytest

from pybroker.streams.runtime import commit_metadata
from pybroker.streams.runtime.commit_metadata import CommitMetadata


@pytest.mark.parametrize("text", ["consumer-1", "AgAA", base64.b64encode(struct.pack(">bq", 3, 5)).decode()])
def test_metadata_of_other_programs_is_ignored(text: str, caplog: pytest.LogCaptureFixture) -> None:
    assert commit_metadata.decode(text) == CommitMetadata()
    assert "Ignoring metadata" in caplog.text


def test_the_first_version_has_a_time_only() -> None:
    text = base64.b64encode(struct.pack(">bq", 1, 99)).decode()
    assert commit_metadata.decode(text) == CommitMetadata(99)


def test_no_metadata_is_no_time() -> None:
    assert commit_metadata.decode("") == CommitMetadata(-1, {})
