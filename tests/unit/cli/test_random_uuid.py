from __future__ import annotations

import pytest

from pybroker.cli.main import main
from pybroker.cli.uuids import parse_uuid


def test_an_id_is_printed_that_every_tool_reads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    text = capsys.readouterr().out.removesuffix("\n")
    assert len(parse_uuid(text)) == 16
    assert not text.startswith("-")
    main(["random-uuid"])
    assert capsys.readouterr().out != f"{text}\n"
