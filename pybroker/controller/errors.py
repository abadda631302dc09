"""What this package raises.

ControllerError
├── NotControllerError         this node does not lead the quorum, or is stopping: ask another, or later
├── ControllerTimeoutError     the active controller did not answer in time
├── UnservedByControllerError  the active controller does not speak what it is asked, or not in that version
├── UnforwardableError         a request that the active controller would not take
├── StaleBrokerEpochError      the broker was registered anew meanwhile, or never was
├── QuorumError                the quorum's state does not fit together
├── ForeignClusterError        a voter of another cluster
├── UnknownVoterError          a voter that this quorum does not have, or in another directory
├── QuorumStateError           the `quorum-state` file is not what was written
├── MetadataLogError           the metadata log is not what was written
└── SnapshotFetchError         another node does not give a snapshot as it should
"""

from __future__ import annotations


class ControllerError(Exception):
    """Base of what this package raises."""


class NotControllerError(ControllerError):
    """This node does not lead the metadata quorum."""


class ControllerTimeoutError(ControllerError):
    """The active controller did not answer in time; whether it did what it was asked is not known."""


class UnservedByControllerError(ControllerError):
    """The active controller does not speak an API, or not in the version that is needed."""


class UnforwardableError(ControllerError):
    """A client's request that the active controller would not take; the text says why."""


class StaleBrokerEpochError(ControllerError):
    """The broker epoch is not the one in force."""


class QuorumError(ControllerError):
    """The quorum refuses what it was given; damage or a bug."""


class ForeignClusterError(ControllerError):
    """Messages of a voter of another cluster."""


class UnknownVoterError(ControllerError):
    """Messages of a voter, or for one, that this quorum does not have."""


class QuorumStateError(ControllerError):
    """The `quorum-state` file cannot be understood; the text names the file."""


class MetadataLogError(ControllerError):
    """The metadata log cannot be understood; the text names the place."""


class SnapshotFetchError(ControllerError):
    """Another node refuses a snapshot of the metadata log, or gives something else; the text says what."""
