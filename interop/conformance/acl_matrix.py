"""The ACL matrix: every API asked by users of whom each may do one thing alone, or all but one.

The requests are those of `acl_requests.py`. What an answer is does not matter: it has to be the same with
both brokers, and with both controllers, whose listener is asked every API that it serves.

These users have prefixed ACLs for every host. A sample of APIs is asked by others, whose ACLs are of every
kind: about one name, a prefix or all names, for this host or another one, with denials of each kind; also
beside ACLs for all users. The same sample is asked where all users may do what no ACL is about.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from interop.conformance.acl_requests import ROOT, Resources, expire, hidden_name, requests_of, resources_of
from interop.conformance.acl_share_groups import SharedTopics
from interop.conformance.conversation import Conversation
from interop.conformance.talk import ANY, CLOSED, Talk
from interop.conformance.versions import latest_version, served_versions
from pykafka_broker.apis import APIS
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.apis.ports.authorizer import CLUSTER_NAME, SUPPORTED_OPERATIONS, bit_field
from pykafka_broker.config.authorizer import ALLOW_EVERYONE, STANDARD_AUTHORIZER
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import module_name, response_type
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest

CLUSTER, TOPIC, GROUP = AclResourceType.CLUSTER, AclResourceType.TOPIC, AclResourceType.GROUP
TRANSACTIONAL_ID, USER = AclResourceType.TRANSACTIONAL_ID, AclResourceType.USER
DELEGATION_TOKEN = AclResourceType.DELEGATION_TOKEN
#: By the type of a resource. Answers have no such field for the types that `SUPPORTED_OPERATIONS` leaves out.
OPERATIONS = {
    **SUPPORTED_OPERATIONS,
    DELEGATION_TOKEN: bit_field(AclOperation.DESCRIBE),
    USER: bit_field(AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}


@dataclass(frozen=True)
class Grant:
    """The ACLs of one user: (type of the resource, operation, permission)."""

    user: str
    acls: tuple[tuple[AclResourceType, AclOperation, AclPermission], ...]


def _grants() -> Iterator[Grant]:
    every = [
        (resource_type, operation)
        for resource_type, supported in OPERATIONS.items()
        for operation in AclOperation
        if supported & (1 << operation)
    ]
    all_of_them = tuple((each, AclOperation.ALL, AclPermission.ALLOW) for each in OPERATIONS)
    yield Grant("may-nothing", ())
    for resource_type, operation in every:
        name = f"{operation.name}-{resource_type.name}".lower().replace("_", "-")
        yield Grant(f"may-{name}", ((resource_type, operation, AclPermission.ALLOW),))
        denied = (resource_type, operation, AclPermission.DENY)
        yield Grant(f"may-all-but-{name}", (*all_of_them, denied))
    yield Grant("may-all", all_of_them)


GRANTS = tuple(_grants())

#: Where the conversations come from, and where nobody does.
HERE, ELSEWHERE, ANYWHERE = "127.0.0.1", "192.0.2.1", "*"
#: What ACLs are about: one resource of each type, all of a prefix that are known to it, or all.
ONE, PREFIX, ALL = "one", "prefix", "all"
_ALLOW, _DENY = AclPermission.ALLOW, AclPermission.DENY

#: By user: what the ACLs for all operations are about, for which host, and what they say.
KINDS: Mapping[str, tuple[tuple[str, str, AclPermission], ...]] = {
    "one": ((ONE, ANYWHERE, _ALLOW),),
    "all": ((ALL, ANYWHERE, _ALLOW),),
    "one-from-here": ((ONE, HERE, _ALLOW),),
    "all-from-elsewhere": ((ALL, ELSEWHERE, _ALLOW),),
    "prefix-from-here-all-from-elsewhere": ((PREFIX, HERE, _ALLOW), (ALL, ELSEWHERE, _ALLOW)),
    "prefix-but-one": ((PREFIX, ANYWHERE, _ALLOW), (ONE, ANYWHERE, _DENY)),
    "all-but-one": ((ALL, ANYWHERE, _ALLOW), (ONE, ANYWHERE, _DENY)),
    "all-but-prefix": ((ALL, ANYWHERE, _ALLOW), (PREFIX, ANYWHERE, _DENY)),
    "one-but-prefix": ((ONE, ANYWHERE, _ALLOW), (PREFIX, ANYWHERE, _DENY)),
    "one-but-all": ((ONE, ANYWHERE, _ALLOW), (ALL, ANYWHERE, _DENY)),
    "all-but-one-from-here": ((ALL, ANYWHERE, _ALLOW), (ONE, HERE, _DENY)),
    "all-but-one-from-elsewhere": ((ALL, ANYWHERE, _ALLOW), (ONE, ELSEWHERE, _DENY)),
    "one-from-here-but-all-from-elsewhere": ((ONE, HERE, _ALLOW), (ALL, ELSEWHERE, _DENY)),
    "one-and-not-one": ((ONE, HERE, _ALLOW), (ONE, ANYWHERE, _DENY)),
}
#: A user whom no ACL of a matrix is about.
STRANGER = "stranger"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_USERS = " ".join(
    f'user_{name}="{name}"' for name in (ROOT, STRANGER, *(grant.user for grant in GRANTS), *KINDS)
)
_JAAS = f'{_LOGIN} username="{ROOT}" password="{ROOT}" {_USERS};'
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": _JAAS,
    "listener.name.controller.plain.sasl.jaas.config": _JAAS,
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "delegation.token.secret.key": "conformance",
    # Apache Kafka creates a topic after its answer: the next user's may be another one.
    "auto.create.topics.enable": "false",
    "super.users": f"User:{ROOT}",
}
WHERE_ALL_MAY = {**SETTINGS, ALLOW_EVERYONE: "true"}


# -- ACLs ---------------------------------------------------------------------------------------------------


def names_in_acls(resources: Resources) -> Mapping[AclResourceType, tuple[str, str]]:
    """By the type: the name of a resource, and what it and others begin with that are known to a user."""
    prefix, group, transactional_id = resources.prefix, resources.groups[0], resources.transactional_ids[0]
    names = {
        TOPIC: (resources.topics[0].name, prefix),
        GROUP: (group, prefix),
        TRANSACTIONAL_ID: (transactional_id, prefix),
        # There is no other name of this type.
        CLUSTER: (CLUSTER_NAME, CLUSTER_NAME),
        USER: (f"User:{resources.owners[0]}", f"User:{prefix}"),
    }
    if resources.tokens:
        # Ids of tokens are random.
        token_id = resources.tokens[0].token_id
        names[DELEGATION_TOKEN] = token_id, token_id[:8]
    return names


def of_operations(resources: Resources) -> list[AclCreation]:
    """The ACLs of `GRANTS`."""
    names = names_in_acls(resources)
    return [
        AclCreation(
            resource_type=resource_type,
            resource_name=names[resource_type][1],
            resource_pattern_type=PatternType.LITERAL if resource_type is CLUSTER else PatternType.PREFIXED,
            principal=f"User:{each.user}",
            host=ANYWHERE,
            operation=operation,
            permission_type=permission,
        )
        for each in GRANTS
        for resource_type, operation, permission in each.acls
        if resource_type in names
    ]


def of_kinds(resources: Resources) -> list[AclCreation]:
    """The ACLs of `KINDS`."""
    return [
        AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=PatternType.PREFIXED if about == PREFIX else PatternType.LITERAL,
            principal=f"User:{user}",
            host=host,
            operation=AclOperation.ALL,
            permission_type=permission,
        )
        for user, acls in KINDS.items()
        for about, host, permission in acls
        for resource_type, (one, prefix) in names_in_acls(resources).items()
        for name in [
            {ONE: one, PREFIX: prefix, ALL: CLUSTER_NAME if resource_type is CLUSTER else "*"}[about]
        ]
    ]


def of_kinds_and_for_all(resources: Resources) -> list[AclCreation]:
    """The same, and for all users: they may use what begins with the prefix, and not what is hidden.

    None of them is about the cluster, of which other conversations ask.
    """
    for_all = [
        AclCreation(
            resource_type=resource_type,
            resource_name=name,
            resource_pattern_type=pattern,
            principal="User:*",
            host=ANYWHERE,
            operation=AclOperation.ALL,
            permission_type=permission,
        )
        for resource_type, begin in ((TOPIC, ""), (GROUP, ""), (TRANSACTIONAL_ID, ""), (USER, "User:"))
        for name, pattern, permission in (
            (begin + resources.prefix, PatternType.PREFIXED, _ALLOW),
            (begin + hidden_name(resources.prefix), PatternType.LITERAL, _DENY),
        )
    ]
    return of_kinds(resources) + for_all


def grant(root: Talk, creations: list[AclCreation]) -> None:
    """Create the ACLs, and wait until they are in force at the broker and at the controller."""
    root.do(CreateAclsRequest(creations=creations))
    counts = Counter((each.resource_name, each.resource_pattern_type) for each in creations)
    controllers = root.controllers()
    for (name, pattern), count in counts.items():
        wanted = DescribeAclsRequest(
            resource_type_filter=AclResourceType.ANY,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        for asked in (root, controllers):
            while sum(len(resource.acls) for resource in asked.do(wanted).resources) < count:
                pass
    controllers.close()


# -- conversations ------------------------------------------------------------------------------------------

#: Who may describe the cluster is told of the groups and the controllers of other conversations, and who asks
#: for all topics or all tokens of theirs.
ALONE = frozenset(
    {
        "describe_cluster",
        "describe_delegation_token",
        "describe_topic_partitions",
        "elect_leaders",
        "list_config_resources",
        "list_groups",
        "metadata",
    }
)
#: Not about what a user may do, or answered without one.
WITHOUT_USERS = frozenset({"api_versions", "sasl_handshake", "sasl_authenticate"})
#: In the oldest version a member that joins waits for the members of the other users.
LATEST_ALONE = frozenset({"join_group", "sync_group", "heartbeat", "leave_group"})
#: Also asked by users who are members of share groups.
OF_MEMBERS = frozenset({"share_fetch", "share_acknowledge"})
#: Asked about each kind of ACL, at the newest version: about resources of each type, and of several.
SAMPLE = frozenset(
    {
        "add_partitions_to_txn",
        "alter_client_quotas",
        "create_delegation_token",
        "create_topics",
        "delete_records",
        "describe_cluster",
        "describe_configs",
        "describe_delegation_token",
        "describe_groups",
        "describe_transactions",
        "fetch",
        "find_coordinator",
        "init_producer_id",
        "list_offsets",
        "offset_fetch",
        "produce",
        "txn_offset_commit",
    }
)
SAMPLE_OF_CONTROLLERS = frozenset({"alter_partition", "create_topics", "describe_configs", "vote"})
#: Of a listener of controllers answers are other ones only with this.
OF_CONTROLLERS = {"endpoint_type": 2}

CreationsOf = Callable[[Resources], list[AclCreation]]


@dataclass(frozen=True)
class Asking:
    """Who is asked by whom: the function of a conversation."""

    creations_of: CreationsOf
    users: tuple[str, ...]
    #: A controller, and not a broker.
    is_with_controllers: bool = False

    def __call__(self, talk: Talk) -> None:
        talk.log_in(ROOT)
        api = talk.subject.api
        resources = resources_of(talk)
        grant(talk, self.creations_of(resources))
        shared = None
        if api in OF_MEMBERS:
            # Without the group and the topic that do not exist.
            shared = SharedTopics(talk, resources.groups[::2], resources.topics[::2])
        for name in self.users:
            user = talk.another()
            user.log_in(name)
            talk.note("the user", name)
            asked = user.controllers() if self.is_with_controllers else user

            def ask(request: Any, asked: Talk = asked) -> Any:
                key = request.api_key
                version = asked.version if module_name(key) == api else latest_version(key)
                return asked.ask(request, ANY, CLOSED, in_any_order=_without_order(key, version))

            values = OF_CONTROLLERS if self.is_with_controllers else {}
            for request in requests_of(api, talk.version, resources, values):
                ask(request)
            if shared is not None:
                shared.read(api, ask)
            user.close()
        expire(talk, resources)


_EACH = tuple(each.user for each in GRANTS)
#: The conversations of each API, by their names.
ALL_USERS = {"what_each_of_many_users_is_told": Asking(of_operations, _EACH)}
OF_EACH_KIND = {
    "what_users_with_acls_of_each_kind_are_told": Asking(of_kinds, tuple(KINDS)),
    "what_users_with_acls_of_each_kind_are_told_beside_acls_for_all": Asking(
        of_kinds_and_for_all, ("may-nothing", *KINDS)
    ),
}
BY_CONTROLLERS = {"what_each_of_many_users_is_told_by_a_controller": Asking(of_operations, _EACH, True)}
OF_EACH_KIND_BY_CONTROLLERS = {
    "what_users_with_acls_of_each_kind_are_told_by_a_controller": Asking(of_kinds, tuple(KINDS), True)
}
NO_ACL_IS_NEEDED = {
    "what_each_of_many_users_is_told_where_all_may_do_what_no_acl_is_about": Asking(of_operations, _EACH)
}


def matrix() -> Iterator[Conversation]:
    """A conversation for each API at its oldest and its newest version, and samples at the newest."""
    brokers = [module_name(each.key) for each in APIS]
    for api in brokers:
        if api in WITHOUT_USERS:
            continue
        served = served_versions(api)
        newest = served[-1:]
        yield from _conversations(api, newest if api in LATEST_ALONE else _ends(served), ALL_USERS)
        if api in SAMPLE:
            yield from _conversations(api, newest, OF_EACH_KIND)
            yield from _conversations(api, newest, NO_ACL_IS_NEEDED, WHERE_ALL_MAY)
    for api in (module_name(each.key) for each in CONTROLLER_APIS):
        if api in WITHOUT_USERS:
            continue
        served = served_versions(api)
        # Brokers are asked at the oldest version as well.
        versions = served[-1:] if api in brokers else _ends(served)
        yield from _conversations(api, versions, BY_CONTROLLERS)
        if api in SAMPLE_OF_CONTROLLERS:
            yield from _conversations(api, served[-1:], OF_EACH_KIND_BY_CONTROLLERS)


def _ends(served: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({served[0], served[-1]}))


def _conversations(
    api: str,
    versions: tuple[int, ...],
    functions: Mapping[str, Asking],
    settings: Mapping[str, str] = SETTINGS,
) -> Iterator[Conversation]:
    for name, function in functions.items():
        yield Conversation(api, name, versions, api in ALONE, False, function, tuple(settings.items()))


#: Fields by which elements are told apart.
TELLING = frozenset(
    {
        "name",
        "topic_id",
        "topic_name",
        "topic",
        "partition_id",
        "group_id",
        "member_id",
        "key",
        "transactional_id",
        "resource_name",
        "resource_type",
    }
)


@cache
def _without_order(api_key: int, version: int) -> dict[str, str]:
    """The arrays of an answer that tell of resources, and how their elements are told apart: Apache sorts
    out what is denied in hash maps.
    """
    found: dict[str, str] = {}

    def walk(cls: type) -> None:
        for field in schema_of(cls).fields:
            struct = field.element.struct if field.element is not None else field.struct
            if struct is None or version not in field.versions:
                continue
            own = [one.name for one in schema_of(struct).fields if version in one.versions]
            keys = [name for name in own if name in TELLING]
            if field.kind == "array" and keys:
                found[field.name] = "/".join(keys)
            walk(struct)

    walk(response_type(api_key))
    return found
