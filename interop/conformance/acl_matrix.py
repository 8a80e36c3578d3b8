"""The ACL matrix: every API asked by users of whom each may do one thing alone, or all but one.

Requests are made of the declarations of their messages. A field that names a topic, a group or a
transactional id is given one that the ACLs of the users are about, one of these that does not exist, and one
that no ACL is about; every other field gets a value with which the request goes as far as possible. What an
answer is does not matter: it has to be the same with both brokers.

These users have prefixed ACLs for every host. A sample of APIs is asked by others, whose ACLs are of every
kind: about one name, a prefix or all names, for this host or another one, with denials of each kind.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import count, product
from typing import Any

from interop.conformance.acl_share_groups import (
    SharedTopics,
    share_group_with_a_member,
    share_group_without_members,
    streams_group_with_a_member,
)
from interop.conformance.conversation import Conversation
from interop.conformance.share_groups import LEAVE as LEAVE_SHARE_GROUP
from interop.conformance.share_groups import beating as beating_share_group
from interop.conformance.share_groups import joining as joining_share_group
from interop.conformance.shares import SHARE, share_group_at_home
from interop.conformance.streams import LEAVE, beating, internal, joining, part, topology
from interop.conformance.talk import ANY, CLOSED, Talk, Topic
from interop.conformance.versions import latest_version, served_versions
from pykafka_broker.apis import APIS
from pykafka_broker.apis.ports.authorizer import SUPPORTED_OPERATIONS
from pykafka_broker.config.authorizer import STANDARD_AUTHORIZER
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.fields import REQUIRED, ZEROS, Field, schema_of
from pykafka_broker.protocol.messages import module_name, request_type, response_type
from pykafka_broker.protocol.messages import offset_commit as commit
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.protocol.messages.describe_acls import DescribeAclsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

ROOT = "root"
CLUSTER, TOPIC, GROUP = AclResourceType.CLUSTER, AclResourceType.TOPIC, AclResourceType.GROUP
TRANSACTIONAL_ID = AclResourceType.TRANSACTIONAL_ID
CLUSTER_NAME = "kafka-cluster"


@dataclass(frozen=True)
class Grant:
    """The ACLs of one user: (type of the resource, operation, permission)."""

    user: str
    acls: tuple[tuple[AclResourceType, AclOperation, AclPermission], ...]


def _grants() -> Iterator[Grant]:
    every = [
        (resource_type, operation)
        for resource_type, supported in SUPPORTED_OPERATIONS.items()
        for operation in AclOperation
        if supported & (1 << operation)
    ]
    all_of_them = tuple((each, AclOperation.ALL, AclPermission.ALLOW) for each in SUPPORTED_OPERATIONS)
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
_USERS = " ".join(f'user_{name}="{name}"' for name in (ROOT, *(grant.user for grant in GRANTS), *KINDS))
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{ROOT}" password="{ROOT}" {_USERS};'
    ),
    "authorizer.class.name": STANDARD_AUTHORIZER,
    # Apache Kafka creates a topic after its answer: the next user's may be another one.
    "auto.create.topics.enable": "false",
    # The node speaks to its own controller over a listener without authentication.
    "super.users": f"User:{ROOT};User:ANONYMOUS",
}


# -- resources ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Resources:
    """What requests are about: the ACLs are about all that begins with `prefix`."""

    prefix: str
    topics: tuple[Topic, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]

    def of(self, entity: str) -> tuple[Any, ...]:
        known: Mapping[str, tuple[Any, ...]] = {
            "topic_name": self.topics,
            "group_id": self.groups,
            "transactional_id": self.transactional_ids,
        }
        return known.get(entity, ())


#: The id of a topic that does not exist.
NO_TOPIC_ID = bytes(range(16))


def names_with(prefix: str) -> tuple[str, str, str, str]:
    """The names of a group, of a transactional id, of what does not exist, and of what no ACL is about."""
    # The hashes of two names that differ in their last letter alone differ by so much that no node has both.
    return f"{prefix}-g", f"{prefix}-tx", f"{prefix}-missing", f"hidden-{prefix}"


def prefix_at_home(root: Talk) -> str:
    """What these names have in common; in a cluster the home of the conversation coordinates all of them."""
    if root.home is None:
        return root.name("acls")
    coordinates = root.home.coordinates
    # Names that differ in a digit or two have hashes that differ alike.
    prefixes = (root.name(f"{zlib.crc32(b'%d' % number):08x}-acls") for number in count())
    return next(each for each in prefixes if all(map(coordinates, names_with(each))))


def resources_of(root: Talk, creations_of: Callable[[str], list[AclCreation]]) -> Resources:
    """Create them, and the ACLs about them; `creations_of` is given what their names begin with."""
    prefix = prefix_at_home(root)
    group, transactional_id, missing, hidden = names_with(prefix)
    topics: tuple[Topic, ...] = (
        root.topic(name=f"{prefix}-t"),
        Topic(missing, NO_TOPIC_ID),
        root.topic(name=hidden),
    )
    if root.home is not None and root.subject.api in OF_SHARE_COORDINATORS:
        # Of a group and several topics, whose ids are random, several nodes are the coordinators.
        topics = topics[:1]
        group = share_group_at_home(root, group, (topics[0].id, 0))
    for key_type, name in ((0, group), (1, transactional_id), (SHARE, share_key(group))):
        root.do(FindCoordinatorRequest(coordinator_keys=[name], key_type=key_type))
    for name in (group, hidden):
        GROUPS_OF.get(root.subject.api, group_with_offsets)(root, name, topics[0])
    for name in (transactional_id, hidden):
        root.do(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000))
    grant(root, creations_of(prefix))
    return Resources(prefix, topics, (group, missing, hidden), (transactional_id, missing, hidden))


def share_key(group: str) -> str:
    """What a share coordinator is looked for with: a group, a topic and a partition."""
    return f"{group}:{'A' * 22}:0"


def group_with_offsets(root: Talk, group: str, topic: Topic) -> None:
    """A group that has committed an offset of the topic."""
    offset = commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_metadata=None
    )
    of_topic = commit.OffsetCommitRequestTopic(name=topic.name, topic_id=topic.id, partitions=[offset])
    root.do(commit.OffsetCommitRequest(group_id=group, member_id="", topics=[of_topic]))


#: What kind of groups there are, by the API that is asked.
GROUPS_OF: Mapping[str, Callable[[Talk, str, Topic], None]] = {
    "share_group_heartbeat": share_group_without_members,
    "share_group_describe": share_group_with_a_member,
    "describe_share_group_offsets": share_group_without_members,
    "alter_share_group_offsets": share_group_without_members,
    "delete_share_group_offsets": share_group_without_members,
    "streams_group_describe": streams_group_with_a_member,
}


def of_operations(prefix: str) -> list[AclCreation]:
    """The ACLs of `GRANTS`."""
    return [
        AclCreation(
            resource_type=resource_type,
            resource_name=CLUSTER_NAME if resource_type is CLUSTER else prefix,
            resource_pattern_type=PatternType.LITERAL if resource_type is CLUSTER else PatternType.PREFIXED,
            principal=f"User:{each.user}",
            host=ANYWHERE,
            operation=operation,
            permission_type=permission,
        )
        for each in GRANTS
        for resource_type, operation, permission in each.acls
    ]


def of_kinds(prefix: str) -> list[AclCreation]:
    """The ACLs of `KINDS`."""
    group, transactional_id, *_ = names_with(prefix)
    names = {TOPIC: f"{prefix}-t", GROUP: group, TRANSACTIONAL_ID: transactional_id}
    return [
        AclCreation(
            resource_type=resource_type,
            resource_name={ONE: name, PREFIX: prefix, ALL: "*"}[about],
            resource_pattern_type=PatternType.PREFIXED if about == PREFIX else PatternType.LITERAL,
            principal=f"User:{user}",
            host=host,
            operation=AclOperation.ALL,
            permission_type=permission,
        )
        for user, acls in KINDS.items()
        for about, host, permission in acls
        for resource_type, name in names.items()
    ]


def grant(root: Talk, creations: list[AclCreation]) -> None:
    """Create the ACLs, and wait until they are in force."""
    root.do(CreateAclsRequest(creations=creations))
    for name, pattern in dict.fromkeys((e.resource_name, e.resource_pattern_type) for e in creations):
        wanted = DescribeAclsRequest(
            resource_type_filter=AclResourceType.ANY,
            resource_name_filter=name,
            pattern_type_filter=pattern,
            principal_filter=None,
            host_filter=None,
            operation=AclOperation.ANY,
            permission_type=AclPermission.ANY,
        )
        count = sum((e.resource_name, e.resource_pattern_type) == (name, pattern) for e in creations)
        while sum(len(resource.acls) for resource in root.do(wanted).resources) < count:
            pass


# -- requests -----------------------------------------------------------------------------------------------

#: The values of fields by their name, where a zero would end the request early or change too much.
VALUES: Mapping[str, Any] = {
    "acks": 1,
    "allow_auto_topic_creation": False,
    "assignments": [],
    "count": 2,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "max_bytes": 1_000_000,
    "max_wait_ms": 0,
    "num_partitions": 1,
    "partition_max_bytes": 1_000_000,
    "pattern_type": 3,
    "rebalance_timeout_ms": 10_000,
    "replication_factor": 1,
    "session_timeout_ms": 10_000,
    "timeout_ms": 10_000,
    "timestamp": -1,
    "transaction_timeout_ms": 10_000,
    "validate_only": True,
}
#: Fields that are left empty.
EMPTY = frozenset({"forgotten_topics_data", "states_filter", "types_filter", "resource_types"})
BATCH = build_batch([(1_700_000_000_000, b"key", b"value", ())], BatchFields())


def requests_of(api: str, version: int, resources: Resources) -> list[Any]:
    """The requests in which an API is asked: about the resources, and once without each of the fields that
    may be left out, which is about all there are.
    """
    key = next(each.key for each in APIS if module_name(each.key) == api)
    cls = request_type(key)
    if special := SPECIAL.get(api):
        return special(cls, version, resources)
    made = [Maker(version, resources).struct(cls, {})]
    for field in schema_of(cls).fields:
        if version in field.versions and version in field.nullable and api not in ABOUT_THE_BROKER:
            without = Maker(version, resources).struct(cls, {})
            setattr(without, field.name, None)
            made.append(without)
    return made


class Maker:
    """Makes messages of a version."""

    def __init__(self, version: int, resources: Resources, values: Mapping[str, Any] | None = None) -> None:
        self.version = version
        self.resources = resources
        self.values = {**VALUES, **(values or {})}

    def struct(self, cls: type, about: Mapping[str, Any]) -> Any:
        """A struct about these resources, by the kind of entity."""
        own = dict(about)
        for entity in _entities(cls, self.version):
            own.setdefault(entity, next(iter(self.resources.of(entity)), None))
        return cls(
            **{field.name: self.value(field, own) for field in schema_of(cls).fields if self.has(field)}
        )

    def has(self, field: Field) -> bool:
        """Whether the field is on the wire in this version, or has to be given anyway."""
        return self.version in field.versions or field.default is REQUIRED

    def value(self, field: Field, about: Mapping[str, Any]) -> Any:
        if self.version not in field.versions:
            return [] if field.kind == "array" else ZEROS.get(field.kind, 0)
        entity = "topic_name" if field.name == "topic_id" else field.entity
        named = about.get(entity or "")
        if named is not None and field.kind in ("string", "uuid"):
            return self.name_of(field, named)
        if field.kind == "records":
            return BATCH
        if field.name in self.values:
            return self.values[field.name]
        if field.kind == "array":
            return self.elements(field, about)
        if field.default is not REQUIRED:
            return field.default
        if self.version in field.nullable:
            return None
        if field.kind == "struct":
            assert field.struct is not None
            return self.struct(field.struct, about)
        return "x" if field.kind == "string" else ZEROS.get(field.kind, 0)

    @staticmethod
    def name_of(field: Field, named: Any) -> Any:
        if isinstance(named, Topic):
            return named.id if field.kind == "uuid" else named.name
        return named

    def elements(self, field: Field, about: Mapping[str, Any]) -> list[Any]:
        element = field.element
        assert element is not None
        if field.name in EMPTY:
            return []
        if element.kind != "struct":
            of_kind = self.resources.of("topic_name" if field.name == "topic_ids" else element.entity or "")
            return [self.name_of(element, each) for each in of_kind] or [self.value(element, about)]
        assert element.struct is not None
        kinds = [kind for kind in _entities(element.struct, self.version) if kind not in about]
        choices = product(*(self.resources.of(kind) for kind in kinds))
        return [
            self.struct(element.struct, {**about, **dict(zip(kinds, chosen, strict=True))})
            for chosen in choices
        ]


def _entities(cls: type, version: int) -> list[str]:
    """The kinds of resources that a struct itself names."""
    found = dict.fromkeys(
        "topic_name" if field.name == "topic_id" else field.entity
        for field in schema_of(cls).fields
        if version in field.versions and field.kind in ("string", "uuid")
    )
    return [kind for kind in found if kind in ("topic_name", "group_id", "transactional_id")]


# -- requests that their declarations do not say enough about ------------------------------------------------

Special = Callable[[type, int, Resources], list[Any]]


def about_configs(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of topics, groups, a broker, its loggers and a subscription."""
    names = [(2, topic.name) for topic in resources.topics]
    names += [(32, group) for group in resources.groups]
    names += [(4, "1"), (4, ""), (8, "1"), (16, f"{resources.prefix}-m")]
    maker = Maker(version, resources, {"configuration_keys": ["cleanup.policy"], "configs": []})
    array = next(field for field in schema_of(cls).fields if field.name == "resources")
    assert array.element is not None and array.element.struct is not None
    request = maker.struct(cls, {})
    request.resources = []
    for kind, name in names:
        element = maker.struct(array.element.struct, {})
        element.resource_type, element.resource_name = kind, name
        request.resources.append(element)
    return [request]


def about_acls(cls: type, version: int, resources: Resources) -> list[Any]:
    numbers = {
        "resource_type": TOPIC,
        "resource_type_filter": TOPIC,
        "resource_name": f"other-{resources.prefix}",
        "resource_name_filter": f"other-{resources.prefix}",
        "resource_pattern_type": PatternType.LITERAL,
        "pattern_type_filter": PatternType.LITERAL,
        "principal": "User:x",
        "operation": AclOperation.READ,
        "permission_type": AclPermission.ALLOW,
    }
    return [Maker(version, resources, numbers).struct(cls, {})]


def finding(cls: type, version: int, resources: Resources) -> list[Any]:
    made = []
    for key_type, names in ((0, resources.groups), (1, resources.transactional_ids)):
        if version < 1 and key_type:
            continue
        if version < 4:
            made += [cls(key=name, key_type=key_type) for name in names]
        else:
            made.append(cls(coordinator_keys=list(names), key_type=key_type))
    if version >= 6:
        made.append(cls(coordinator_keys=[*map(share_key, resources.groups)], key_type=SHARE))
    return made


def producing(cls: type, version: int, resources: Resources) -> list[Any]:
    """A plain batch, and one of a transaction: without its flag a transactional id is not looked at."""
    plain = Maker(version, resources).struct(cls, {})
    plain.transactional_id = None
    of_transaction = Maker(version, resources).struct(cls, {})
    batch = build_batch(
        [(1_700_000_000_000, b"key", b"value", ())],
        BatchFields(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True),
    )
    for topic in of_transaction.topic_data:
        topic.partition_data[0].records = batch
    return [plain, of_transaction]


def streaming(cls: type, version: int, resources: Resources) -> list[Any]:
    """A member that joins with topics of each kind and no topics to create, one without a topology, and one
    that leaves.
    """
    names = [topic.name for topic in resources.topics]
    made = []
    for group in resources.groups:
        for kind in ("source_topics", "repartition_sink_topics", "state_changelog_topics"):
            of_kind = [internal(name) for name in names] if kind.startswith("state") else names
            # A source topic that is missing keeps the internal ones from being created.
            parts = {"source_topics": [names[1]], kind: of_kind}
            made.append(joining(group, "m", topology(part("0", **parts))))
        made += [beating(group, "m", 1), beating(group, "m", LEAVE)]
    return made


def sharing(cls: type, version: int, resources: Resources) -> list[Any]:
    """A member of each existing group that joins with each topic, and leaves. A new group would assign
    nothing at once.
    """
    return [
        request
        for group in resources.groups[::2]
        for topic in resources.topics
        for request in (
            joining_share_group(group, "m", topic),
            beating_share_group(group, "m", LEAVE_SHARE_GROUP),
        )
    ]


def about_start_offsets(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of named topics, and of all."""
    named = Maker(version, resources).struct(cls, {})
    of_all = Maker(version, resources).struct(cls, {})
    for group in of_all.groups:
        group.topics = None
    return [named, of_all]


def about_share_partitions(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of the first group: these declarations do not say that their group is one."""
    return [Maker(version, resources, {"group_id": resources.groups[0]}).struct(cls, {})]


#: Asked of the coordinator of share partitions.
OF_SHARE_COORDINATORS = frozenset(
    {
        "delete_share_group_state",
        "initialize_share_group_state",
        "read_share_group_state",
        "read_share_group_state_summary",
        "write_share_group_state",
    }
)
SPECIAL: Mapping[str, Special] = {
    **dict.fromkeys(OF_SHARE_COORDINATORS, about_share_partitions),
    "produce": producing,
    "streams_group_heartbeat": streaming,
    "share_group_heartbeat": sharing,
    "describe_share_group_offsets": about_start_offsets,
    "alter_configs": about_configs,
    "create_acls": about_acls,
    "delete_acls": about_acls,
    "describe_acls": about_acls,
    "describe_configs": about_configs,
    "find_coordinator": finding,
    "incremental_alter_configs": about_configs,
}

#: Who may ask is told what other conversations have left, also of sizes.
#: Apache Kafka fails over a refused request for all users, and leaves it without an answer.
ABOUT_THE_BROKER = frozenset({"describe_log_dirs", "describe_user_scram_credentials"})
#: Who may describe the cluster is told of the groups of other conversations, and who asks for all topics of
#: theirs.
ALONE = frozenset(
    {"list_groups", "list_config_resources", "metadata", "describe_topic_partitions", "elect_leaders"}
)
#: Not about what a user may do, or answered without one.
WITHOUT_USERS = frozenset({"api_versions", "sasl_handshake", "sasl_authenticate"})
#: In the oldest version a member that joins waits for the members of the other users.
LATEST_ALONE = frozenset({"join_group", "sync_group", "heartbeat", "leave_group"})
#: Also asked by users who are members of share groups.
OF_MEMBERS = frozenset({"share_fetch", "share_acknowledge"})
#: Asked about each kind of ACL, at the newest version: about topics, groups, transactional ids, and several.
SAMPLE = frozenset(
    {
        "add_partitions_to_txn",
        "delete_records",
        "describe_configs",
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


def matrix() -> Iterator[Conversation]:
    """A conversation for each API of brokers, at its oldest and its newest version."""
    for api in (module_name(each.key) for each in APIS):
        if api in WITHOUT_USERS:
            continue
        served = served_versions(api)
        versions = served[-1:] if api in LATEST_ALONE else tuple(sorted({served[0], served[-1]}))
        name = "what_each_of_many_users_is_told"
        yield Conversation(api, name, versions, api in ALONE, False, _asked_by_all, tuple(SETTINGS.items()))
        if api in SAMPLE:
            name = "what_users_with_acls_of_each_kind_are_told"
            newest = served[-1:]
            yield Conversation(
                api, name, newest, api in ALONE, False, _asked_by_kinds, tuple(SETTINGS.items())
            )


def _asked_by_all(talk: Talk) -> None:
    _asked_by(talk, of_operations, [each.user for each in GRANTS])


def _asked_by_kinds(talk: Talk) -> None:
    _asked_by(talk, of_kinds, KINDS)


def _asked_by(talk: Talk, creations_of: Callable[[str], list[AclCreation]], users: Iterable[str]) -> None:
    talk.log_in(ROOT)
    api = talk.subject.api
    resources = resources_of(talk, creations_of)
    shared = None
    if api in OF_MEMBERS:
        # Without the group and the topic that do not exist.
        shared = SharedTopics(talk, resources.groups[::2], resources.topics[::2])
    for name in users:
        user = talk.another()
        user.log_in(name)
        talk.note("the user", name)

        def ask(request: Any, user: Talk = user) -> Any:
            version = user.version if module_name(request.api_key) == api else latest_version(request.api_key)
            order = _without_order(request.api_key, version)
            return user.ask(request, ANY, CLOSED, in_any_order=order)

        for request in requests_of(api, talk.version, resources):
            ask(request)
        if shared is not None:
            shared.read(api, ask)
        user.close()


#: Fields by which elements are told apart.
TELLING = frozenset(
    {
        "name",
        "topic_id",
        "topic_name",
        "topic",
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
