"""A cluster whose settings name its voters becomes one whose log names them, while it runs (KIP-853)."""

from __future__ import annotations

import time

import pytest

from pybroker.client import Admin, NewTopic
from pybroker.client.administration.quorum import FeatureUpdate, QuorumDescription
from pybroker.client.errors import BrokerError, ClientError
from pybroker.metadata.features import KRAFT_VERSION
from pybroker.storage.log_dirs.meta_properties import id_bytes, read_meta_properties
from pybroker.testing import Cluster
from tests.support.conditions import wait_until
from tests.support.wire import Wire, request

pytestmark = pytest.mark.process

VOTERS = (1, 2, 3)
RAISED = {KRAFT_VERSION: FeatureUpdate(1)}
_WAIT_S = 60.0


def level_at(cluster: Cluster, broker: int) -> int:
    """The finalized level of kraft.version that a broker answers with; 0 where it names none."""
    with Wire(cluster.address(broker)) as wire:
        response = wire.query(request("ApiVersions", 4, client_software_name="t", client_software_version="1"))
    return next((one.max_version_level for one in response.finalized_features if one.name == KRAFT_VERSION), 0)


def wait_level(cluster: Cluster) -> None:
    """Wait until every broker answers that the log names the voters."""
    wait_until(lambda: {level_at(cluster, broker) for broker in cluster.brokers} == {1}, within=_WAIT_S, what="level 1")


def directory_of(cluster: Cluster, broker: int) -> bytes:
    meta = read_meta_properties(cluster.directory / f"broker-{broker}" / "data")
    assert meta is not None
    return id_bytes(meta.directory_id)


def quorum(cluster: Cluster) -> QuorumDescription:
    with Admin(cluster.bootstrap_servers) as admin:
        return admin.describe_quorum()


def wait_voters(cluster: Cluster, *voters: int) -> None:
    """Wait until just these vote, each by its directory."""
    wanted = {(one, directory_of(cluster, one)) for one in voters}

    def found() -> bool:
        try:
            described = quorum(cluster)
        except (BrokerError, ClientError):
            return False
        return {(one.node_id, one.directory_id) for one in described.voters} == wanted

    wait_until(found, within=_WAIT_S, what=f"the voters {voters}")


def create(cluster: Cluster, name: str) -> None:
    """Create a topic, trying again while an election is on."""
    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            with Admin(cluster.bootstrap_servers) as admin:
                admin.create_topics([NewTopic(name, 1, 3)])
            return
        except (BrokerError, ClientError):
            assert time.monotonic() < deadline


def test_the_log_names_the_voters_from_the_upgrade_on() -> None:
    with Cluster(4) as cluster, Admin(cluster.bootstrap_servers) as admin:
        create(cluster, "before")
        assert {level_at(cluster, broker) for broker in cluster.brokers} == {0}
        going = next(voter for voter in VOTERS if voter != quorum(cluster).leader_id)
        assert admin.update_features(RAISED, validate_only=True) == {KRAFT_VERSION: None}
        assert level_at(cluster, 1) == 0
        assert admin.update_features(RAISED) == {KRAFT_VERSION: None}
        wait_level(cluster)
        wait_voters(cluster, *VOTERS)
        create(cluster, "after")
        # Again it changes nothing, and it does not fall.
        assert admin.update_features(RAISED) == {KRAFT_VERSION: None}
        # A leader that dies is followed by another, and comes back as the voter that it was.
        leader = quorum(cluster).leader_id
        cluster.kill(leader)
        create(cluster, "without-the-leader")
        cluster.start(leader)
        for broker in cluster.brokers:
            if broker != leader:
                cluster.stop(broker)
                cluster.start(broker)
        wait_voters(cluster, *VOTERS)
        wait_level(cluster)
        # Voters come and go from now on.
        with Admin(cluster.bootstrap_servers) as again:
            again.remove_raft_voter(going, directory_of(cluster, going))
        wait_voters(cluster, *(voter for voter in VOTERS if voter != going))
        create(cluster, "with-two")
        made = {"before", "after", "without-the-leader", "with-two"}
        with Admin(cluster.bootstrap_servers) as again:
            wait_until(lambda: made <= set(again.list_topics()), within=60, what="every broker knows the topics")
