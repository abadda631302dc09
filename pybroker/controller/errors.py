"""The exceptions of this package.

ControllerError
├── NotControllerError         this node does not lead the quorum, or is stopping: retry later or on another node
├── ControllerTimeoutError     the active controller did not respond in time
├── UnservedByControllerError  the active controller does not support the API, or not the needed version
├── UnforwardableError         the active controller would reject the forwarded request
├── StaleBrokerEpochError      the broker has a newer registration, or none
├── QuorumError                the quorum's state is inconsistent
├── ForeignClusterError        a voter of another cluster
├── UnknownVoterError          a voter that this quorum does not have, or with another directory id
├── QuorumStateError           the `quorum-state` file is damaged
├── MetadataLogError           the metadata log is damaged
└── SnapshotFetchError         another node refused a snapshot, or sent an invalid one
"""

from __future__ import annotations


class ControllerError(Exception):
    """Base class of the exceptions of this package."""


class NotControllerError(ControllerError):
    """This node does not lead the metadata quorum."""


class ControllerTimeoutError(ControllerError):
    """The active controller did not respond in time; whether it executed the request is unknown."""


class UnservedByControllerError(ControllerError):
    """The active controller does not support an API, or not in the version that is needed."""


class UnforwardableError(ControllerError):
    """The active controller would reject this client request; the text gives the reason."""


class StaleBrokerEpochError(ControllerError):
    """The broker epoch is not the one of the current registration."""


class QuorumError(ControllerError):
    """The quorum rejects its input; this indicates damage or a bug."""


class ForeignClusterError(ControllerError):
    """A message came from a voter of another cluster."""


class UnknownVoterError(ControllerError):
    """A message came from, or is addressed to, a voter that this quorum does not have."""


class QuorumStateError(ControllerError):
    """The `quorum-state` file cannot be parsed; the text names the file."""


class MetadataLogError(ControllerError):
    """The metadata log cannot be parsed; the text names the position."""


class SnapshotFetchError(ControllerError):
    """Another node refused a snapshot of the metadata log, or sent an invalid response; the text gives the reason."""
