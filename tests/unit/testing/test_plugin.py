from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from pybroker.client.administration.admin import Admin
from pybroker.client.administration.async_admin import AsyncAdmin
from pybroker.testing import AsyncBroker, Broker


def test_the_fixture_is_a_running_broker(broker: Broker) -> None:
    with Admin(broker.bootstrap_servers) as admin:
        assert admin.list_topics() == []


@pytest.mark.broker(num_partitions=2)
def test_a_mark_gives_it_settings(broker: Broker) -> None:
    assert broker.config.num_partitions == 2


def test_the_plugin_itself_imports_no_broker() -> None:
    code = "import sys, pybroker.testing.plugin; print('pybroker.node' in sys.modules, 'uvloop' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == (
        "False False\n"
    )


def run_pytest(directory: Path, text: str, *options: str) -> str:
    """The output of pytest about a module of tests."""
    (directory / "test_module.py").write_text(textwrap.dedent(text))
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider", *options]
    command += ["-o", "asyncio_mode=auto", "test_module.py"]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False).stdout


def test_a_mark_with_a_setting_that_there_is_not_fails_the_test(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        """
        import pytest

        @pytest.mark.broker(num_partition=7)
        def test_misspelt(broker): ...

        @pytest.mark.broker(7)
        def test_unnamed(broker): ...

        @pytest.mark.broker(properties={"num.partitions": 7})
        def test_no_text(async_broker): ...
        """,
    )
    assert "3 errors" in output
    assert "Unknown broker config name: num.partition; is num.partitions meant?" in output
    assert "broker(7,): pass settings by name, as in broker(num_partitions=3)" in output
    assert "Broker(properties={'num.partitions': 7}): expected texts by Kafka's names" in output


@pytest.mark.broker(
    num_partitions=2, log_retention_ms=5, properties={"broker.rack": "a", "log.segment.bytes": "2097152"}
)
class TestMarks:
    """A method's mark merges with its class's."""

    def test_the_classs_alone(self, broker: Broker) -> None:
        assert (broker.config.num_partitions, broker.config.broker_rack) == (2, "a")

    @pytest.mark.broker(num_partitions=3)
    def test_a_methods_setting_goes_before(self, broker: Broker) -> None:
        config = broker.config
        assert (config.num_partitions, config.log_retention_ms, config.log_segment_bytes) == (3, 5, 2097152)

    @pytest.mark.broker(properties={"num.partitions": "4", "broker.rack": "b"})
    def test_a_methods_property_goes_before_a_setting_of_its_name(self, broker: Broker) -> None:
        config = broker.config
        assert (config.num_partitions, config.broker_rack, config.log_segment_bytes) == (4, "b", 2097152)

    @pytest.mark.broker(log_segment_bytes=4194304)
    def test_a_methods_setting_goes_before_a_property_of_its_name(self, broker: Broker) -> None:
        assert (broker.config.log_segment_bytes, broker.config.broker_rack) == (4194304, "a")


@pytest.mark.broker(security="SASL_PLAINTEXT", num_partitions=3)
def test_a_topic_is_made_on_the_broker_of_the_test(broker: Broker, topic: str) -> None:
    with Admin(broker.bootstrap_servers, broker.client_properties()) as admin:
        assert [(one.name, len(one.partitions)) for one in admin.describe_topics([topic])] == [(topic, 3)]


@pytest.mark.parametrize("odd", ["a.b", "a_b", "ü/ü" * 100], ids=str)
async def test_a_topic_has_a_name_that_kafka_takes(async_broker: AsyncBroker, topic: str, odd: str) -> None:
    async with AsyncAdmin(async_broker.bootstrap_servers) as admin:
        assert await admin.list_topics() == [topic], odd


def test_a_broker_of_the_session_is_shared_and_forgets_faults(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        """
        import pytest
        from pybroker.client import Admin

        PLACES = []

        @pytest.fixture(scope="session")
        def session_broker_settings():
            return {"num_partitions": 2}

        @pytest.mark.parametrize("number", range(2))
        def test_it(session_broker, topic, number):
            PLACES.append((session_broker.bootstrap_servers, topic))
            fault = session_broker.fail("CreateTopics", "POLICY_VIOLATION", times=None)
            assert fault.fired == 0
            with Admin(session_broker.bootstrap_servers) as admin:
                assert len(admin.describe_topics([topic])[0].partitions) == 2

        def test_there_was_one(topic):
            (one, first), (same, second) = PLACES
            assert one == same
            assert len({first, second, topic}) == 3

        @pytest.mark.broker(num_partitions=3)
        def test_of_a_mark(session_broker): ...
        """,
    )
    assert "4 passed, 1 warning" in output
    assert "test_of_a_mark: the mark `broker` has no effect on session_broker; session_broker_settings has" in output


UNFIRED = """
import pytest

@pytest.fixture
def refusing(broker):
    return broker.fail("Metadata", "REQUEST_TIMED_OUT")

@pytest.fixture(scope="session", autouse=True)
def of_the_session(session_broker):
    session_broker.delay("Fetch", 1)

def test_forgotten(broker):
    broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER")

def test_of_a_fixture(refusing): ...

async def test_removed(async_broker):
    with async_broker.disconnect("Fetch"):
        pass

def test_read(broker):
    assert broker.hold("Produce").fired == 0

def test_fails(broker):
    broker.ignore("Produce")
    raise AssertionError("for another reason")
"""


def test_a_fault_that_never_happened_is_warned_of_where_it_was_made(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, UNFIRED)
    assert "1 failed, 4 passed, 3 warnings" in output
    for line, api in ((13, "Produce"), (6, "Metadata"), (18, "Fetch")):
        words = rf"UnfiredFaultWarning: <fault of {api}: .* 0 fired, .* left>, made at test_module.py:{line}, never"
        assert re.search(rf"test_module.py:{line}: {words} happened", output)


def test_a_project_can_have_such_a_fault_fail_its_test(tmp_path: Path) -> None:
    output = run_pytest(tmp_path, UNFIRED, "-W", "error::pybroker.testing.UnfiredFaultWarning")
    assert "4 failed, 1 passed" in output
    assert "never happened; read its `fired` in a test where this is right" in output


def test_a_traceback_of_a_wrong_call_ends_at_the_tests_line(tmp_path: Path) -> None:
    output = run_pytest(
        tmp_path,
        """
        def test_name(broker):
            broker.fail("Prodcue", 1)

        def test_type(broker):
            broker.advance("1d")

        def test_wait(broker):
            broker.fail("Produce", 1).wait(timeout=0)

        def test_requests(broker):
            broker.requests.wait_for("Produce", timeout=0)

        def test_stopped(broker):
            broker.stop()
            broker.restart()

        async def test_async(async_broker):
            await async_broker.wait_for("Prodcue")
        """,
    )
    assert "6 failed" in output
    assert output.count("test_module.py:") >= 6
    assert "pybroker/testing/" not in output
