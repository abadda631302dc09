"""Controllers that come and go under load: processes, formatted as a guide says it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pybroker.client.administration.topics import NewTopic
from pybroker.client.errors import BrokerError, ClientError
from tests.support.conditions import wait_until
from tests.support.dynamic_cluster import DynamicCluster, dynamic_cluster

pytestmark = pytest.mark.process


class Load:
    """Topics that are created one after the other, and the names of those that the cluster has acknowledged."""

    def __init__(self, cluster: DynamicCluster) -> None:
        self._cluster = cluster
        self.created: list[str] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set():
            number += 1
            try:
                with self._cluster.admin() as admin:
                    admin.create_topics([NewTopic(f"t{number}", 1, 1)])
                self.created.append(f"t{number}")
            except (BrokerError, ClientError):
                continue  # an election is on; whether it was created is not known

    @contextmanager
    def running(self) -> Iterator[Load]:
        self._thread.start()
        try:
            yield self
        finally:
            self._ending.set()
            self._thread.join()

    def wait_more(self) -> None:
        """Return when another topic is created."""
        before = len(self.created)
        wait_until(lambda: len(self.created) > before, within=60, what="a topic that is created")


def test_a_fourth_joins_the_leader_leaves_and_a_lost_disk_is_replaced(tmp_path: Path) -> None:
    with dynamic_cluster(tmp_path, 3) as cluster, Load(cluster).running() as load:
        cluster.wait_voters(1, 2, 3)
        cluster.join(4)
        cluster.start(4)
        cluster.add(4)
        load.wait_more()
        leader = cluster.wait_voters(1, 2, 3, 4).leader_id
        cluster.remove(leader)
        left = [number for number in (1, 2, 3, 4) if number != leader]
        assert cluster.wait_voters(*left).leader_id != leader
        load.wait_more()
        lost = next(number for number in left if number != cluster.quorum().leader_id)
        before = cluster.directory_id(lost)
        cluster.nodes[lost].kill()
        shutil.rmtree(cluster.nodes[lost].node.directory)
        cluster.join(lost)
        cluster.start(lost)
        cluster.remove(lost, before)
        cluster.add(lost)
        cluster.wait_voters(*left)
        load.wait_more()
        with cluster.admin() as admin:
            assert set(load.created) <= set(admin.list_topics())


def test_a_controller_that_may_joins_by_itself_and_says_where_it_moved(tmp_path: Path) -> None:
    with dynamic_cluster(tmp_path, 1) as cluster:
        cluster.wait_voters(1)
        cluster.join(2, controller_quorum_auto_join_enable="true")
        cluster.start(2)
        assert cluster.wait_voters(1, 2).endpoints[2] == cluster.endpoints(2)
        before = cluster.endpoints(2)
        cluster.move(2)
        cluster.start(2)
        assert cluster.endpoints(2) != before
        wait_until(
            lambda: cluster.wait_voters(1, 2).endpoints[2] == cluster.endpoints(2), within=60, what="the new address"
        )


def test_all_voters_end_at_once_and_find_each_other_again(tmp_path: Path) -> None:
    with dynamic_cluster(tmp_path, 2) as cluster:
        cluster.wait_voters(1, 2)
        cluster.join(3)
        cluster.start(3)
        cluster.add(3)
        for node in cluster.nodes.values():
            node.kill()
        cluster.start()
        assert cluster.wait_voters(1, 2, 3).leader_id in (1, 2, 3)
