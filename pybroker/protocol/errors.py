"""Kafka's error codes, and the exceptions of this package.

Owns the numbers and names of Kafka 4.3's wire errors, and which of them are retriable. Must not know which error a
handler returns: see `pybroker.handlers.errors`. The codec raises the exceptions.

    ProtocolError
    ├── MalformedMessage       the bytes do not match the schema
    │   └── TooManyElements    more elements than the decoder accepts
    ├── UnsupportedVersion     the version is not declared, or cannot encode the value
    └── UnencodableValue       the value does not fit the wire type: wrong type, out of range, or null if not nullable
"""

from __future__ import annotations

from enum import IntEnum

LONGEST_MESSAGE = 32_767 // 4
"""Maximum characters of an error message: it fits in a protocol string even if each takes 4 bytes in UTF-8."""


class ProtocolError(Exception):
    """Base of this package's exceptions."""


class MalformedMessage(ProtocolError):
    """The bytes do not match the message's schema. The text has the position."""


class TooManyElements(MalformedMessage):
    """The message has more array elements and tagged fields than the decoder accepts. The text has the limit."""


class UnsupportedVersion(ProtocolError):
    """The version is not declared, or cannot encode a value. The text has the field, value and version."""


class UnencodableValue(ProtocolError, ValueError):
    """The value does not fit the field's wire type. The text has the field and the value."""


class ErrorCode(IntEnum):
    """Kafka's error codes, each with its retriability and a default message."""

    retriable: bool
    """Whether Kafka's clients retry the request after this error."""
    message: str
    """One sentence, used if a handler has no more precise message."""

    def __new__(cls, code: int, retriable: bool = False, message: str = "") -> ErrorCode:
        """Return a member whose value is the code only."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    UNKNOWN_SERVER_ERROR = (-1, False, "The broker failed in a way it did not foresee.")
    NONE = (0, False, "No error.")
    OFFSET_OUT_OF_RANGE = (1, False, "The offset lies outside what the broker holds.")
    CORRUPT_MESSAGE = (2, True, "The batch is corrupt: checksum, size or structure is wrong.")
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "This broker does not host the topic or partition.")
    INVALID_FETCH_SIZE = (4, False, "The requested fetch size is invalid.")
    LEADER_NOT_AVAILABLE = (5, True, "The partition has no leader at the moment.")
    NOT_LEADER_OR_FOLLOWER = (6, True, "This broker is neither leader nor follower of the partition.")
    REQUEST_TIMED_OUT = (7, True, "The request timed out.")
    BROKER_NOT_AVAILABLE = (8, False, "The broker is not available.")
    REPLICA_NOT_AVAILABLE = (9, True, "The replica is not on this broker.")
    MESSAGE_TOO_LARGE = (10, False, "The batch is larger than max.message.bytes.")
    STALE_CONTROLLER_EPOCH = (11, False, "The controller moved to another broker.")
    OFFSET_METADATA_TOO_LARGE = (12, False, "The metadata field of the offset request was too large.")
    NETWORK_EXCEPTION = (13, True, "The server disconnected before a response was received.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "The coordinator is still loading its state.")
    COORDINATOR_NOT_AVAILABLE = (15, True, "There is no coordinator at the moment.")
    NOT_COORDINATOR = (16, True, "This broker is not the coordinator.")
    INVALID_TOPIC_EXCEPTION = (17, False, "The topic name is invalid, or the topic is internal.")
    RECORD_LIST_TOO_LARGE = (18, False, "The batches are larger than a segment.")
    NOT_ENOUGH_REPLICAS = (19, True, "Fewer replicas are in sync than min.insync.replicas asks for.")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, True, "Written, but to fewer in-sync replicas than required.")
    INVALID_REQUIRED_ACKS = (21, False, "acks must be -1, 0 or 1.")
    ILLEGAL_GENERATION = (22, False, "The group generation is not the current one.")
    INCONSISTENT_GROUP_PROTOCOL = (23, False, "The member's protocols have nothing in common with the group's.")
    INVALID_GROUP_ID = (24, False, "The group id is invalid.")
    UNKNOWN_MEMBER_ID = (25, False, "The coordinator does not know this member.")
    INVALID_SESSION_TIMEOUT = (26, False, "The session timeout is outside what the broker allows.")
    REBALANCE_IN_PROGRESS = (27, False, "The group is rebalancing; rejoin.")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "The size of the offsets to commit is invalid.")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "Topic authorization failed.")
    GROUP_AUTHORIZATION_FAILED = (30, False, "Group authorization failed.")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "Cluster authorization failed.")
    INVALID_TIMESTAMP = (32, False, "The record's timestamp is out of the accepted range.")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "The SASL mechanism is not enabled.")
    ILLEGAL_SASL_STATE = (34, False, "The request does not fit the state of the SASL exchange.")
    UNSUPPORTED_VERSION = (35, False, "The version of this API is not supported.")
    TOPIC_ALREADY_EXISTS = (36, False, "A topic of this name exists already.")
    INVALID_PARTITIONS = (37, False, "Number of partitions is below 1.")
    INVALID_REPLICATION_FACTOR = (38, False, "The replication factor is below 1 or above the number of brokers.")
    INVALID_REPLICA_ASSIGNMENT = (39, False, "Replica assignment is invalid.")
    INVALID_CONFIG = (40, False, "Configuration is invalid.")
    NOT_CONTROLLER = (41, True, "This is not the correct controller for this cluster.")
    INVALID_REQUEST = (42, False, "The request contradicts itself or the protocol.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, False, "The message format does not support the request.")
    POLICY_VIOLATION = (44, False, "The request breaks a configured policy.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, "The sequence number does not follow the last one.")
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "The sequence number was seen before.")
    INVALID_PRODUCER_EPOCH = (47, False, "The producer's epoch is old.")
    INVALID_TXN_STATE = (48, False, "The operation does not fit the state of the transaction.")
    INVALID_PRODUCER_ID_MAPPING = (49, False, "The transactional id has another producer id now.")
    INVALID_TRANSACTION_TIMEOUT = (50, False, "The transaction timeout is above transaction.max.timeout.ms.")
    CONCURRENT_TRANSACTIONS = (51, True, "Another operation on the transaction is under way.")
    TRANSACTION_COORDINATOR_FENCED = (52, False, "The marker comes from a former coordinator.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, False, "Transactional Id authorization failed.")
    SECURITY_DISABLED = (54, False, "Security features are disabled.")
    OPERATION_NOT_ATTEMPTED = (55, False, "Not attempted, because another part of the request failed.")
    KAFKA_STORAGE_ERROR = (56, True, "The disk failed under the log.")
    LOG_DIR_NOT_FOUND = (57, False, "There is no such log directory.")
    SASL_AUTHENTICATION_FAILED = (58, False, "SASL Authentication failed.")
    UNKNOWN_PRODUCER_ID = (59, False, "The broker holds no state for this producer id.")
    REASSIGNMENT_IN_PROGRESS = (60, False, "A partition reassignment is in progress.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "Delegation Token feature is not enabled.")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "Delegation Token is not found on server.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "Specified Principal is not valid Owner/Renewer.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, False, "This channel may not ask for tokens.")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, False, "Delegation Token authorization failed.")
    DELEGATION_TOKEN_EXPIRED = (66, False, "Delegation Token is expired.")
    INVALID_PRINCIPAL_TYPE = (67, False, "Supplied principalType is not supported.")
    NON_EMPTY_GROUP = (68, False, "The group is not empty.")
    GROUP_ID_NOT_FOUND = (69, False, "The group id does not exist.")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "The fetch session ID was not found.")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "The fetch session epoch is invalid.")
    LISTENER_NOT_FOUND = (72, True, "The leader has no listener of this name.")
    TOPIC_DELETION_DISABLED = (73, False, "Topic deletion is disabled.")
    FENCED_LEADER_EPOCH = (74, True, "The leader epoch is older than the broker's.")
    UNKNOWN_LEADER_EPOCH = (75, True, "The leader epoch is newer than the broker's.")
    UNSUPPORTED_COMPRESSION_TYPE = (76, False, "The compression type is not supported here.")
    STALE_BROKER_EPOCH = (77, False, "Broker epoch has changed.")
    OFFSET_NOT_AVAILABLE = (78, True, "The high watermark has not caught up since the election.")
    MEMBER_ID_REQUIRED = (79, False, "Join again with the member id just assigned.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "The preferred leader was not available.")
    GROUP_MAX_SIZE_REACHED = (81, False, "The group has reached its maximum size.")
    FENCED_INSTANCE_ID = (82, False, "Another member with this group.instance.id has registered.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "Eligible topic partition leaders are not available.")
    ELECTION_NOT_NEEDED = (84, True, "Leader election not needed for topic partition.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "No partition reassignment is in progress.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "The group is subscribed to the topic.")
    INVALID_RECORD = (87, False, "The record failed validation.")
    UNSTABLE_OFFSET_COMMIT = (88, True, "Transactional offsets are pending.")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "A quota is exceeded.")
    PRODUCER_FENCED = (90, False, "A newer producer with this transactional id exists.")
    RESOURCE_NOT_FOUND = (91, False, "The resource does not exist.")
    DUPLICATE_RESOURCE = (92, False, "The resource is named twice.")
    UNACCEPTABLE_CREDENTIAL = (93, False, "The credential is not acceptable.")
    INCONSISTENT_VOTER_SET = (94, False, "A sender or receiver is not among the voters.")
    INVALID_UPDATE_VERSION = (95, False, "The given update version was invalid.")
    FEATURE_UPDATE_FAILED = (96, False, "The feature could not be updated.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "The forwarded principal cannot be read.")
    SNAPSHOT_NOT_FOUND = (98, False, "Requested snapshot was not found.")
    POSITION_OUT_OF_RANGE = (99, False, "The position lies outside the snapshot.")
    UNKNOWN_TOPIC_ID = (100, True, "This server does not host this topic ID.")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "This broker ID is already in use.")
    BROKER_ID_NOT_REGISTERED = (102, False, "The given broker ID was not registered.")
    INCONSISTENT_TOPIC_ID = (103, True, "The topic id differs from the log's.")
    INCONSISTENT_CLUSTER_ID = (104, False, "The cluster id differs from this cluster's.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "The transactionalId could not be found.")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, True, "The session mixes topic ids and names.")
    INELIGIBLE_REPLICA = (107, False, "The new ISR holds an ineligible replica.")
    NEW_LEADER_ELECTED = (108, False, "The ISR was changed, and so was the leader.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "The offset lies in tiered storage.")
    FENCED_MEMBER_EPOCH = (110, False, "The member's epoch is fenced; rejoin.")
    UNRELEASED_INSTANCE_ID = (111, False, "Another member still holds the instance id.")
    UNSUPPORTED_ASSIGNOR = (112, False, "The group does not support the assignor.")
    STALE_MEMBER_EPOCH = (113, False, "The member's epoch is old; heartbeat first.")
    MISMATCHED_ENDPOINT_TYPE = (114, False, "The request was sent to an endpoint of the wrong type.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "This endpoint type is not supported yet.")
    UNKNOWN_CONTROLLER_ID = (116, False, "This controller ID is not known.")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "The telemetry subscription is unknown or outdated.")
    TELEMETRY_TOO_LARGE = (118, False, "The telemetry is too large.")
    INVALID_REGISTRATION = (119, False, "The broker's registration is invalid.")
    TRANSACTION_ABORTABLE = (120, False, "The transaction has to be aborted, then the producer can go on.")
    INVALID_RECORD_STATE = (121, False, "The record's state does not allow the acknowledgement.")
    SHARE_SESSION_NOT_FOUND = (122, True, "The share session was not found.")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "The share session epoch is invalid.")
    FENCED_STATE_EPOCH = (124, False, "The state epoch of the share group is fenced.")
    INVALID_VOTER_KEY = (125, False, "The voter's key is not the replica's.")
    DUPLICATE_VOTER = (126, False, "The voter is already part of the set of voters.")
    VOTER_NOT_FOUND = (127, False, "The voter is not part of the set of voters.")
    INVALID_REGULAR_EXPRESSION = (128, False, "The regular expression is not valid.")
    REBOOTSTRAP_REQUIRED = (129, False, "The client's metadata is stale; bootstrap again.")
    STREAMS_INVALID_TOPOLOGY = (130, False, "The supplied topology is invalid.")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, False, "The supplied topology epoch is invalid.")
    STREAMS_TOPOLOGY_FENCED = (132, False, "The topology epoch is outdated.")
    SHARE_SESSION_LIMIT_REACHED = (133, True, "The limit of share sessions has been reached.")
