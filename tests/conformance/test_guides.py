"""README and guides say what is so: their code runs, and prints what they say.

The Python of Spark's pages is run by tests/spark/test_guides.py. Blocks that are modules of tests are run by
tests/conformance/test_testing_guide.py; README has such blocks and a program.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pybroker.testing import Broker
from tests.support import guides, repository
from tests.support.redis_server import redis_server

HERE = [
    page
    for page in guides.pages()
    if "/spark-" not in page
    and page != "docs/guides/testing.md"
    and any(block.language == "python" for block in guides.blocks(page))
]


BROKERS: dict[str, dict[str, Any]] = {
    "docs/guides/client-metrics.md": {"properties": {"telemetry.receivers": "last-values"}},
    "docs/guides/secured-client.md": {"security": "SSL"},
}
"""What brokers a page needs; another page's broker has defaults."""
REDIS = "127.0.0.1:6379"
"""The address of Redis in the pages."""


@pytest.mark.parametrize("page", HERE)
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert any(block.language == "python" and block.why_not is None for block in guides.blocks(page))
    with ExitStack() as running:
        broker = running.enter_context(Broker(**BROKERS.get(page, {})))
        trusted = broker.client_properties().get("ssl.truststore.certificates", "")
        Path("ca.pem").write_text(trusted)
        replaced = {"broker.example:9093": broker.bootstrap_servers} if trusted else {}
        if any(REDIS in block.code for block in guides.blocks(page)):
            replaced[REDIS] = running.enter_context(redis_server(tmp_path)).address
        names = guides.run(page, broker.bootstrap_servers, replaced, broker=broker)
    for test in guides.tests_of(names) if page != "README.md" else ():
        test()


def test_a_block_that_no_test_runs_says_why() -> None:
    runs = {"python"}
    silent = [
        str(block)
        for page in guides.pages()
        for block in guides.blocks(page)
        if block.language in guides.CODE and block.language not in runs and block.why_not is None and block.test is None
    ]
    assert silent == [], "put <!-- not run: reason --> before it"


def test_every_block_names_its_language() -> None:
    bare = [str(block) for page in guides.pages() for block in guides.blocks(page) if not block.language]
    assert bare == []


def test_a_test_that_a_reason_names_is_there() -> None:
    blocks = [block for page in guides.pages() for block in guides.blocks(page)]
    reasons = [reason for block in blocks for reason in (block.why_not, block.test) if reason]
    named = {word.strip(",;") for reason in reasons for word in reason.split() if word.startswith("tests/")}
    assert sorted(path for path in named if path not in repository.files()) == []
