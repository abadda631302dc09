"""What the data plane is given of the authorizer's decisions."""

from __future__ import annotations

from typing import Any, NamedTuple

from pybroker.metadata.image import EMPTY_IMAGE, AccessControlEntry, AclsImage, TopicImage, TopicsImage
from pybroker.net.rights import Rights
from pybroker.security.authorizer import StandardAuthorizer

A, B, UNKNOWN = b"a" * 16, b"b" * 16, b"u" * 16
READ, WRITE, CLUSTER_ACTION = 3, 4, 9


class DataPlane:
    def __init__(self) -> None:
        self.versions: list[int] = []

    def set_rights(self, *, decisions: int, version: int) -> None:
        self.versions.append(version)


class Unresolved(NamedTuple):
    operation: int | None
    checked: list[str | bytes]
    principal: tuple[str, str] | None = ("User", "alice")
    client_host: str = "10.0.0.1"
    api_key: int = 1
    transactional_id: str | None = None


def image() -> Any:
    topics = {topic.topic_id: topic for topic in (TopicImage("a", A, {}), TopicImage("b", B, {}))}
    by_name = {topic.name: topic for topic in topics.values()}
    acls = AclsImage({b"1" * 16: AccessControlEntry(2, "a", 3, "User:alice", "*", READ, 3)})
    return type(EMPTY_IMAGE)(topics=TopicsImage(by_name=by_name, by_id=topics), acls=acls)


def test_a_request_comes_back_with_what_its_client_may_use_and_the_version_of_the_rules() -> None:
    plane: Any = DataPlane()
    rights = Rights(plane, StandardAuthorizer())
    request: Any = Unresolved(READ, ["a", "b", "c", A, B, UNKNOWN])
    decision = rights.decision(request, image())
    assert decision.allowed == ["a", A, UNKNOWN]
    assert decision.version == plane.versions[-1] > plane.versions[0]


def test_a_follower_is_judged_by_the_cluster() -> None:
    plane: Any = DataPlane()
    request: Any = Unresolved(CLUSTER_ACTION, ["a"])
    assert Rights(plane, StandardAuthorizer()).decision(request, image()).allowed == []
    assert Rights(plane, StandardAuthorizer(["User:alice"])).decision(request, image()).allowed == [bytes(16)]


def test_without_an_authorizer_the_data_plane_asks_nothing() -> None:
    plane: Any = DataPlane()
    request: Any = Unresolved(None, [])
    assert Rights(plane, None).decision(request, image()) == ([], 0, False)
    assert plane.versions == []


def test_a_transactional_id_is_judged_with_the_topics_of_its_request() -> None:
    plane: Any = DataPlane()
    entry = AccessControlEntry(5, "mine", 3, "User:alice", "*", WRITE, 3)
    acls = AclsImage({b"1" * 16: entry})
    for requested, allowed in (("mine", True), ("another", False), (None, False)):
        request: Any = Unresolved(WRITE, ["a"], transactional_id=requested)
        decision = Rights(plane, StandardAuthorizer()).decision(request, type(EMPTY_IMAGE)(acls=acls))
        assert decision.transactional_id is allowed
