"""Users that can authenticate by SCRAM (KIP-554): each user of a request succeeds or fails by itself.

Owns the validation of credentials, in the words of Kafka's ScramControlManager.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pybroker.controller.cluster.events import AlteredUser, AlterScramUsers
from pybroker.machine.machine import Outcome
from pybroker.protocol.errors import ErrorCode
from pybroker.protocol.messages.records.remove_user_scram_credential import RemoveUserScramCredentialRecord
from pybroker.protocol.messages.records.user_scram_credential import UserScramCredentialRecord
from pybroker.security.scram import server_key, stored_key
from pybroker.security.scram_mechanisms import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_BY_NUMBER

if TYPE_CHECKING:
    from pybroker.controller.cluster.events import ScramDeletion, ScramUpsertion
    from pybroker.metadata.image import MetadataImage
    from pybroker.protocol.schema import Message

_TWICE = "A user credential cannot be altered twice in the same request"


def alter_scram_users(image: MetadataImage, event: AlterScramUsers) -> Outcome[Message, list[AlteredUser]]:
    """Decide about each user; a request may name a user only once, whatever the mechanism."""
    times = Counter([*(one.name for one in event.deletions), *(one.name for one in event.upsertions)])
    refused: dict[str, AlteredUser] = {
        name: AlteredUser(name, ErrorCode.DUPLICATE_RESOURCE, _TWICE) for name, count in times.items() if count > 1
    }
    records: list[Message] = []
    for deletion in event.deletions:
        fault = refused.get(deletion.name) or _deletion_fault(image, deletion)
        if fault is None:
            records.append(RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism))
        else:
            refused[deletion.name] = fault
    for upsertion in event.upsertions:
        fault = refused.get(upsertion.name) or _upsertion_fault(upsertion)
        if fault is None:
            records.append(_record(upsertion))
        else:
            refused[upsertion.name] = fault
    return Outcome(tuple(records), [refused.get(name) or AlteredUser(name) for name in times])


def _deletion_fault(image: MetadataImage, deletion: ScramDeletion) -> AlteredUser | None:
    fault = _fault(deletion.name, deletion.mechanism)
    if fault is None and deletion.name not in image.scram.of(deletion.mechanism):
        words = "Attempt to delete a user credential that does not exist"
        return AlteredUser(deletion.name, ErrorCode.RESOURCE_NOT_FOUND, words)
    return fault


def _upsertion_fault(upsertion: ScramUpsertion) -> AlteredUser | None:
    fault = _fault(upsertion.name, upsertion.mechanism)
    if fault is not None:
        return fault
    if upsertion.iterations < LEAST_ITERATIONS:
        return AlteredUser(upsertion.name, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if upsertion.iterations > MOST_ITERATIONS:
        return AlteredUser(upsertion.name, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if not upsertion.salted_password:
        # Anyone can compute the keys of an empty password. Kafka's HMAC rejects it, too.
        return AlteredUser(upsertion.name, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salted password must not be empty")
    return None


def _fault(name: str, mechanism: int) -> AlteredUser | None:
    if not name:
        return AlteredUser(name, ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in SCRAM_BY_NUMBER:
        return AlteredUser(name, ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def _record(upsertion: ScramUpsertion) -> UserScramCredentialRecord:
    mechanism = SCRAM_BY_NUMBER[upsertion.mechanism]
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=mechanism.number,
        salt=upsertion.salt,
        stored_key=stored_key(mechanism, upsertion.salted_password),
        server_key=server_key(mechanism, upsertion.salted_password),
        iterations=upsertion.iterations,
    )
