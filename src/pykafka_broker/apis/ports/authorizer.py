"""The authorizer: decides which principal may carry out which operation on which resource.

`AllowAll` is used if none is configured; `broker/security/acl_authorizer.py` decides by ACLs; `apis/needs.py`
says how an API declares its needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from pykafka_broker.protocol.acls import CLUSTER_NAME as CLUSTER_NAME
from pykafka_broker.protocol.acls import AclOperation as AclOperation
from pykafka_broker.protocol.acls import AclResourceType as AclResourceType
from pykafka_broker.protocol.errors import ErrorCode, KafkaError

#: In an answer's bit field: the request did not ask which operations are authorized.
OPERATIONS_NOT_ASKED = -(2**31)


class Requester(Protocol):
    """The sender of a request; a request's context is one."""

    @property
    def principal(self) -> str:
        """The authenticated user: "User:ANONYMOUS" on a plain connection."""
        ...

    @property
    def client_id(self) -> str | None:
        """The client id, unauthenticated, or None. For quotas, not for ACLs."""
        ...

    @property
    def api_key(self) -> int:
        """The API key of the request."""
        ...

    @property
    def client_host(self) -> str:
        """The client's address as Kafka shows it: "/127.0.0.1"."""
        ...

    @property
    def log_fields(self) -> Mapping[str, object]:
        """The fields of log lines about the request."""
        ...


class AclsNotLoaded(KafkaError):
    """The authorizer has not read its ACLs yet. Clients get UNKNOWN_SERVER_ERROR, as for Apache Kafka's
    AuthorizerNotReadyException, which has no code of its own.
    """

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, "The ACLs are not loaded yet")


class Authorizer(Protocol):
    """Decides whether a principal may carry out an operation on a resource."""

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        is_attempt: bool = True,
    ) -> bool:
        """Whether the operation is allowed on this resource; see `filter` for `is_attempt`."""
        ...

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """Whether the operation is allowed on at least one name that a resource of the type may have."""
        ...

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
        *,
        is_attempt: bool = True,
    ) -> Collection[str]:
        """The `names` on which the operation is allowed, in order.

        With `is_attempt` False denials are not logged: the client has not named the resources, or another
        operation may be allowed instead.
        """
        ...

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        """The operations allowed on a resource, as a bit field of `AclOperation` numbers."""
        ...


def bit_field(*operations: AclOperation) -> int:
    """`operations` as the bit field in answers."""
    return sum(1 << operation for operation in operations)


#: Every operation that a resource of each type supports.
SUPPORTED_OPERATIONS = {
    AclResourceType.TOPIC: bit_field(
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: bit_field(
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: bit_field(
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.TRANSACTIONAL_ID: bit_field(AclOperation.WRITE, AclOperation.DESCRIBE),
}


class AllowAll:
    """The authorizer of a broker without ACLs."""

    def allows(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        name: str,
        *,
        is_attempt: bool = True,
    ) -> bool:
        """True."""
        return True

    def allows_somewhere(
        self, requester: Requester, operation: AclOperation, resource_type: AclResourceType
    ) -> bool:
        """True."""
        return True

    def filter(
        self,
        requester: Requester,
        operation: AclOperation,
        resource_type: AclResourceType,
        names: Collection[str],
        *,
        is_attempt: bool = True,
    ) -> Collection[str]:
        """`names` itself."""
        return names

    def operations(self, requester: Requester, resource_type: AclResourceType, name: str) -> int:
        """All that the type supports."""
        return SUPPORTED_OPERATIONS[resource_type]


ALLOW_ALL = AllowAll()
