"""Changes of the voter set by the quorum's leader: adding, removing and updating voters, and the upgrade that moves the
voter set from the configuration to the log (KIP-853).

Owns the order of the checks and their messages, which are Kafka's (`AddVoterHandler`, `RemoveVoterHandler`,
`UpdateVoterHandler`). One change is in progress at a time. A new voter has the whole log before it votes, so that
commits do not wait for it. Must not know requests.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import Result
from pybroker.controller.errors import ControllerError, NotControllerError, QuorumError
from pybroker.controller.quorum.voters.control_records import DYNAMIC
from pybroker.controller.quorum.voters.voter_set import KRAFT_VERSIONS, NO_DIRECTORY, VoterNode, VoterSet
from pybroker.metadata.features import KRAFT_VERSION
from pybroker.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pybroker.controller.quorum.driver import Driver
    from pybroker.controller.quorum.settings import QuorumSettings
    from pybroker.controller.quorum.voters.voter_set import VoterEndpoint

    QueryVersions = Callable[[str, int, int], Awaitable[tuple[int, int]]]
    """Returns the range of kraft.version of a host and port, within a timeout in ms; raises `ControllerError`."""

_MOST_PATIENCE_MS = 15_000
"""Maximum duration of a change: clients time out after half a minute."""
_RETRY_INTERVAL_S = 0.02
_MOST_ENDPOINTS = 64
"""Maximum number of endpoints of a voter, which are in the log and in every snapshot."""
_IS_PENDING = "Request timed out waiting for leader to handle previous voter change request"


class VoterChanges:
    """The voter set changes that one voter decides on while it leads. Used from one event loop.

    Every coroutine raises `NotControllerError` if this voter does not lead.
    """

    def __init__(self, settings: QuorumSettings, driver: Driver, query_versions: QueryVersions) -> None:
        self._settings, self._driver, self._query_versions = settings, driver, query_versions
        self._is_in_progress = False
        self._directories: dict[int, bytes] = {}

    def note_directory(self, node_id: int, directory_id: bytes) -> None:
        """Record the directory id of another voter, from its messages, for `upgrade`."""
        if directory_id != NO_DIRECTORY:
            self._directories[node_id] = directory_id

    async def upgrade(self, *, validate_only: bool) -> Result:
        """Write the configured voter set to the log: kraft.version 0 becomes 1, irreversibly.

        Every voter must be reachable, must have sent its directory id, and must support this (Kafka's `LeaderState`).
        """
        if not self._driver.leads:
            raise NotControllerError("this node does not lead the metadata quorum")
        if self._driver.voter.is_dynamic:
            return Result()
        if self._is_in_progress:
            return Result(ErrorCode.INVALID_UPDATE_VERSION, _IS_PENDING)
        self._is_in_progress = True
        try:
            named = await asyncio.gather(*map(self._named, self._driver.voter.voters.voters))
            refused = next((one for one in named if isinstance(one, str)), None)
            if refused is not None:
                return Result(
                    ErrorCode.INVALID_UPDATE_VERSION, f"Unable to upgrade {KRAFT_VERSION} to {DYNAMIC}: {refused}"
                )
            voters = VoterSet.of(one for one in named if isinstance(one, VoterNode))
            return Result() if validate_only else await self._change(voters, _MOST_PATIENCE_MS)
        finally:
            self._is_in_progress = False

    async def _named(self, voter: VoterNode) -> VoterNode | str:
        """Return the voter with directory id, listener and versions for the log, or the reason why they are unknown."""
        settings = self._settings
        if voter.node_id == settings.node_id:
            endpoints = settings.endpoints or voter.endpoints
            return VoterNode(voter.node_id, settings.directory_id, endpoints, KRAFT_VERSIONS)
        directory_id, endpoint = self._directories.get(voter.node_id), voter.endpoint()
        if directory_id is None or endpoint is None:
            return f"voter {voter.node_id} has not been reached yet, and the id of its directory is not known"
        try:
            lowest, highest = await self._query_versions(endpoint.host, endpoint.port, settings.request_timeout_ms)
        except ControllerError as error:
            return f"voter {voter.node_id} did not return its supported levels: {error}"
        if not lowest <= DYNAMIC <= highest:
            return f"voter {voter.node_id} supports the levels {lowest} to {highest}"
        listener = settings.endpoints[0].listener if settings.endpoints else endpoint.listener
        return VoterNode(voter.node_id, directory_id, (endpoint._replace(listener=listener),), (lowest, highest))

    async def add(self, voter: VoterNode, timeout_ms: int, *, waits: bool = True) -> Result:
        """Add a voter once the replica has caught up with the log; with `waits`, return once this is committed."""
        refused = self._refusal("adding", voter) or self._unreachable("Add", voter)
        if refused is not None:
            return refused
        if self._driver.voter.voters.find(voter.node_id) is not None:
            return Result(
                ErrorCode.DUPLICATE_VOTER,
                f"The voter id for {voter} is already part of the set of voters {self._driver.voter.voters}.",
            )
        self._is_in_progress = True
        try:
            return await self._add(voter, min(max(timeout_ms, 1), _MOST_PATIENCE_MS), waits)
        finally:
            self._is_in_progress = False

    async def remove(self, node_id: int, directory_id: bytes) -> Result:
        """Remove a voter; a leader that is removed resigns afterwards."""
        voter = VoterNode(node_id, directory_id)
        refused = self._refusal("removing", voter)
        if refused is not None:
            return refused
        voters = self._driver.voter.voters
        if not voters.has(voter.key):
            return Result(ErrorCode.VOTER_NOT_FOUND, f"Cannot remove voter {voter} from the set of voters {voters}")
        if len(voters.voters) == 1:
            return Result(
                ErrorCode.INVALID_REQUEST, f"Cannot remove voter {voter}: a quorum has a voter, and it is the only one"
            )
        self._is_in_progress = True
        try:
            return await self._change(voters.without(node_id), _MOST_PATIENCE_MS)
        finally:
            self._is_in_progress = False

    async def update(self, voter: VoterNode) -> ErrorCode:
        """Update the endpoints and versions of a voter; does not wait for the commit."""
        lowest, highest = voter.kraft_versions
        refused = self._refusal("updating", voter) or self._unreachable("Update", voter)
        if refused is not None:
            return refused.error_code
        if not 0 <= lowest <= DYNAMIC <= highest:
            return ErrorCode.INVALID_REQUEST
        voters = self._driver.voter.voters
        if not voters.has(voter.key):
            return ErrorCode.VOTER_NOT_FOUND
        if voters.find(voter.node_id) == voter:
            return ErrorCode.NONE
        result = self._propose(voters.with_voter(voter))
        return result.error_code if isinstance(result, Result) else ErrorCode.NONE

    def _refusal(self, what: str, voter: VoterNode) -> Result | None:
        """Return the error that applies to every kind of change, None if the change is allowed."""
        if not self._driver.leads:
            raise NotControllerError("this node does not lead the metadata quorum")
        if voter.node_id < 0 or voter.directory_id == NO_DIRECTORY:
            kind = {"adding": "Add", "removing": "Remove", "updating": "Update"}[what]
            return Result(ErrorCode.INVALID_REQUEST, f"{kind} voter request didn't include a valid voter")
        if self._is_in_progress:
            return Result(ErrorCode.REQUEST_TIMED_OUT, _IS_PENDING)
        if not self._driver.voter.is_dynamic:
            return Result(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Cluster doesn't support {what} voter because the {KRAFT_VERSION} feature is 0",
            )
        return None

    def _unreachable(self, kind: str, voter: VoterNode) -> Result | None:
        """Return the error for a voter without an endpoint that the other voters can use."""
        listener = self._settings.endpoints[0].listener if self._settings.endpoints else ""
        if len(voter.endpoints) > _MOST_ENDPOINTS:
            return Result(
                ErrorCode.INVALID_REQUEST,
                f"{kind} voter request with {len(voter.endpoints)} endpoints: expected {_MOST_ENDPOINTS} at most",
            )
        if any(one.listener == listener and one.host and one.port for one in voter.endpoints):
            return None
        shown = ", ".join(f"ListenerName({one.listener})={one.host}:{one.port}" for one in voter.endpoints)
        return Result(
            ErrorCode.INVALID_REQUEST,
            f"{kind} voter request didn't include the endpoint (Endpoints(endpoints={{{shown}}})) for the default "
            f"listener ListenerName({listener})",
        )

    async def _add(self, voter: VoterNode, timeout_ms: int, waits: bool) -> Result:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        endpoint: VoterEndpoint | None = voter.endpoint(self._settings.endpoints[0].listener)
        assert endpoint is not None
        try:
            lowest, highest = await self._query_versions(endpoint.host, endpoint.port, timeout_ms)
        except ControllerError as error:
            return Result(
                ErrorCode.REQUEST_TIMED_OUT,
                f"Aborted add voter operation for {voter} since API_VERSIONS returned an error: {error}",
            )
        if not lowest <= DYNAMIC <= highest:
            return Result(
                ErrorCode.INVALID_REQUEST,
                f"Aborted add voter operation for {voter} since the {KRAFT_VERSION} range (min: {lowest}, max: "
                f"{highest}) doesn't support the finalized version {DYNAMIC}",
            )
        wanted = self._driver.voter.last_index
        while not any(key == voter.key and index >= wanted for key, index, _ in self._driver.voter.progress()):
            if not self._driver.leads:
                raise NotControllerError("this node no longer leads the metadata quorum")
            if loop.time() >= deadline:
                return Result(
                    ErrorCode.REQUEST_TIMED_OUT, f"Aborted add voter operation for {voter} since it is lagging behind"
                )
            await asyncio.sleep(_RETRY_INTERVAL_S)
        voters = self._driver.voter.voters.with_voter(voter._replace(kraft_versions=(lowest, highest)))
        if not waits:
            result = self._propose(voters)
            return result if isinstance(result, Result) else Result()
        return await self._change(voters, max(int((deadline - loop.time()) * 1000), 1))

    def _propose(self, voters: VoterSet) -> asyncio.Future[None] | Result:
        """Append a change, or return the error if another one is not committed yet."""
        driver = self._driver
        try:
            committed = driver.propose_voters(voters)
        except QuorumError:
            return Result(
                ErrorCode.REQUEST_TIMED_OUT,
                "Request timed out waiting for voters to commit the latest voter change with HWM "
                f"{driver.committed_offset}",
            )
        committed.add_done_callback(_observe)
        return committed

    async def _change(self, voters: VoterSet, timeout_ms: int) -> Result:
        """Change the voters, and wait until the change is committed and persisted on this node."""
        committed = self._propose(voters)
        if isinstance(committed, Result):
            return committed
        done, _ = await asyncio.wait([committed], timeout=timeout_ms / 1000)
        if not done:
            return Result(ErrorCode.REQUEST_TIMED_OUT)
        committed.result()
        await self._driver.completed()
        return Result()


def _observe(committed: asyncio.Future[None]) -> None:
    """Consume the error of a change whose leader resigned and that has no waiting caller."""
    if not committed.cancelled():
        committed.exception()
