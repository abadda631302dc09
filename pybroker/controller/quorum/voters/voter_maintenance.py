"""Requests that a controller sends to the quorum's leader by itself: to update its endpoints, and to join (KIP-853).

Owns when a request is due. A voter whose endpoints or versions differ from the log sends an update. A controller with
`controller.quorum.auto.join.enable` requests to become a voter (KIP-1186); an older replica of its node id is removed.
Must not know how the leader handles requests. Failed requests are retried.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from pybroker.client.errors import ClientError
from pybroker.client.network.connection import Connection
from pybroker.client.settings import ConnectionSettings
from pybroker.controller.errors import ControllerError
from pybroker.controller.quorum.voters.voter_set import KRAFT_VERSIONS, VoterNode
from pybroker.metadata.features import KRAFT_VERSION
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages import add_raft_voter, remove_raft_voter, update_raft_voter

if TYPE_CHECKING:
    from pybroker.client.security.renewed import RenewedSecurity
    from pybroker.controller.quorum.driver import Driver
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.voters.voter_changes import VoterChanges
    from pybroker.protocol.schema import Message

log = logging.getLogger("pybroker.controller")


class Requested(NamedTuple):
    """A request to the leader."""

    request: Message
    response: type[Message]
    what: str


class VoterMaintenance:
    """The requests of one controller. Used from one event loop."""

    def __init__(self, settings: QuorumSettings, driver: Driver, changes: VoterChanges) -> None:
        self._settings, self._driver, self._changes = settings, driver, changes
        self._running: asyncio.Task[None] | None = None
        # The last rejection, which is logged once.
        self._refusal = ""

    def start(self) -> None:
        """Start the checks."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop sending requests."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.fetch_timeout_ms / 2000)
            try:
                await self._check()
            except (ControllerError, OSError) as error:
                self._note(str(error))

    async def _check(self) -> None:
        voter, own = self._driver.voter, self._own()
        if not voter.is_dynamic or not voter.voters.voters or not own.endpoints:
            return
        if self._driver.leads:
            if voter.votes and voter.voters.find(own.node_id) != own:
                await self._changes.update(own)
            return
        requested = self._requested(own)
        address = None if voter.leader_key is None else self._driver.peers.address(voter.leader_key)
        if requested is None or address is None:
            return
        code, text = await query_leader(
            f"{address.host}:{address.port}",
            requested,
            self._settings.node_id,
            self._settings.request_timeout_ms,
            self._settings.security,
        )
        self._note("" if code == ErrorCode.NONE else f"{requested.what} was rejected with {_name(code)}: {text or ''}")

    def _own(self) -> VoterNode:
        settings = self._settings
        return VoterNode(settings.node_id, settings.directory_id, settings.endpoints, KRAFT_VERSIONS)

    def _requested(self, own: VoterNode) -> Requested | None:
        """Return the request that is due now, None for none."""
        settings, voters = self._settings, self._driver.voter.voters
        before = voters.find(own.node_id)
        if before is not None and before.key == own.key:
            if before == own:
                return None
            lowest, highest = own.kraft_versions
            return Requested(
                update_raft_voter.UpdateRaftVoterRequest(
                    cluster_id=settings.cluster_id,
                    current_leader_epoch=self._driver.voter.term,
                    voter_id=own.node_id,
                    voter_directory_id=own.directory_id,
                    listeners=[
                        update_raft_voter.Listener(name=one.listener, host=one.host, port=one.port)
                        for one in own.endpoints
                    ],
                    kraft_version_feature=update_raft_voter.KRaftVersionFeature(
                        min_supported_version=lowest, max_supported_version=highest
                    ),
                ),
                update_raft_voter.UpdateRaftVoterResponse,
                "the new address of this voter",
            )
        if not settings.auto_join:
            return None
        if before is not None:
            return Requested(
                remove_raft_voter.RemoveRaftVoterRequest(
                    cluster_id=settings.cluster_id,
                    voter_id=before.node_id,
                    voter_directory_id=before.directory_id,
                ),
                remove_raft_voter.RemoveRaftVoterResponse,
                "the removal of the voter that had this node's id before",
            )
        return Requested(
            add_raft_voter.AddRaftVoterRequest(
                cluster_id=settings.cluster_id,
                timeout_ms=settings.request_timeout_ms,
                voter_id=own.node_id,
                voter_directory_id=own.directory_id,
                listeners=[
                    add_raft_voter.Listener(name=one.listener, host=one.host, port=one.port) for one in own.endpoints
                ],
                ack_when_committed=False,
            ),
            add_raft_voter.AddRaftVoterResponse,
            "this controller's vote",
        )

    def _note(self, refusal: str) -> None:
        if refusal and refusal != self._refusal:
            log.warning("%s; retrying", refusal)
        self._refusal = refusal


async def query_leader(
    server: str, requested: Requested, node_id: int, timeout_ms: int, security: RenewedSecurity | None = None
) -> tuple[int, str | None]:
    """Return error code and message of a controller's response; raises `ControllerError`."""
    settings = ConnectionSettings(
        {
            "client.id": f"node-{node_id}",
            # The response may wait for a commit, and for a voter to catch up.
            "request.timeout.ms": str(2 * timeout_ms + 1000),
            "socket.connection.setup.timeout.ms": str(timeout_ms),
        }
    )
    if security is not None:
        security.secure(settings)
    try:
        connection = await Connection.open(server, settings)
        try:
            reply: Any = await connection.query(requested.request, requested.response)
        finally:
            await connection.close()
    except ClientError as error:
        raise ControllerError(f"{server}: {error}") from error
    return reply.error_code, getattr(reply, "error_message", None)


async def supported_kraft_versions(
    host: str, port: int, timeout_ms: int, security: RenewedSecurity | None = None
) -> tuple[int, int]:
    """Return the levels of kraft.version that a controller supports; raises `ControllerError`."""
    settings = ConnectionSettings(
        {"request.timeout.ms": str(timeout_ms), "socket.connection.setup.timeout.ms": str(timeout_ms)}
    )
    if security is not None:
        security.secure(settings)
    try:
        connection = await Connection.open(f"[{host}]:{port}" if ":" in host else f"{host}:{port}", settings)
    except ClientError as error:
        raise ControllerError(str(error)) from error
    try:
        found = connection.features.get(KRAFT_VERSION)
    finally:
        await connection.close()
    return (0, 0) if found is None else (found.lowest, found.highest)


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error code {code}"
