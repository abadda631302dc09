"""What is read of `recovery-report`: each line by itself, and a line that is damaged is passed over."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from pybroker.storage.losses import REPORT_NAME, Report, read_reports

WHOLE = '{"time_ms":1,"cause":"hole","from_offset":2,"known_end":3,"place":null,"bytes":4,"set_aside":["a"],"text":"t"}'
EXPECTED = Report(1, "hole", 2, 4, ("a",), "t")

values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
fields = st.fixed_dictionaries(dict.fromkeys(["time_ms", "cause", "from_offset", "bytes", "set_aside", "text"], values))
damaged = st.one_of(st.binary(max_size=100), (fields | values).map(lambda value: json.dumps(value).encode()))


@given(damaged, damaged)
@example(b"[" * 200_000, b'{"time_ms":Infinity,"cause":"","from_offset":0,"bytes":0,"set_aside":[],"text":""}')
@example(b"9" * 5000, b"\x85\xff\x1e")
def test_a_whole_line_is_read_whatever_is_around_it(before: bytes, behind: bytes) -> None:
    with TemporaryDirectory() as name:
        (Path(name) / REPORT_NAME).write_bytes(b"\n".join([before, WHOLE.encode(), behind, b""]))
        assert EXPECTED in read_reports(Path(name))
