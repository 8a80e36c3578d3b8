"""The requests of the ACL matrix, and what they are about.

Requests are made of the declarations of their messages. A field that names a topic, a group or a
transactional id is given one that the ACLs of the users are about, one of these that does not exist, and one
that no ACL is about; every other field gets a value with which the request goes as far as possible.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count, product
from typing import Any

from interop.conformance.acl_share_groups import (
    share_group_with_a_member,
    share_group_without_members,
    streams_group_with_a_member,
)
from interop.conformance.apis.controller_registration import registering as controller_registration
from interop.conformance.apis.create_delegation_token import created, creation, known_to
from interop.conformance.apis.envelope import principal_of, wrapped
from interop.conformance.share_groups import LEAVE as LEAVE_SHARE_GROUP
from interop.conformance.share_groups import beating as beating_share_group
from interop.conformance.share_groups import joining as joining_share_group
from interop.conformance.shares import SHARE, share_group_at_home
from interop.conformance.streams import LEAVE, beating, internal, joining, part, topology
from interop.conformance.talk import Talk, Topic
from pykafka_broker.apis import APIS
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.fields import REQUIRED, ZEROS, Field, schema_of
from pykafka_broker.protocol.messages import module_name, request_type
from pykafka_broker.protocol.messages import offset_commit as commit
from pykafka_broker.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from pykafka_broker.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner
from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from pykafka_broker.protocol.messages.init_producer_id import InitProducerIdRequest
from pykafka_broker.protocol.records.batch import BatchFields, build_batch

#: The super user, who creates what requests are about.
ROOT = "root"


@dataclass(frozen=True)
class Resources:
    """What requests are about: the ACLs are about all that begins with `prefix`.

    Of each type one is there, one is missing, and no ACL is about the last.
    """

    prefix: str
    topics: tuple[Topic, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    #: Names of users, who own tokens.
    owners: tuple[str, ...]
    #: Of the owners that are there; none for APIs that are not about tokens.
    tokens: tuple[CreateDelegationTokenResponse, ...]

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
    return f"{prefix}-g", f"{prefix}-tx", f"{prefix}-missing", hidden_name(prefix)


def hidden_name(prefix: str) -> str:
    """The name of what no ACL is about."""
    return f"hidden-{prefix}"


def prefix_at_home(root: Talk) -> str:
    """What these names have in common; in a cluster the home of the conversation coordinates all of them."""
    if root.home is None:
        return root.name("acls")
    coordinates = root.home.coordinates
    # Names that differ in a digit or two have hashes that differ alike.
    prefixes = (root.name(f"{zlib.crc32(b'%d' % number):08x}-acls") for number in count())
    return next(each for each in prefixes if all(map(coordinates, names_with(each))))


def resources_of(root: Talk) -> Resources:
    """Create them."""
    prefix = prefix_at_home(root)
    group, transactional_id, missing, hidden = names_with(prefix)
    topics: tuple[Topic, ...] = (
        root.topic(name=f"{prefix}-t"),
        Topic(missing, NO_TOPIC_ID),
        root.topic(name=hidden),
    )
    api = root.subject.api
    if root.home is not None and api in OF_SHARE_COORDINATORS:
        # Of a group and several topics, whose ids are random, several nodes are the coordinators.
        topics = topics[:1]
        group = share_group_at_home(root, group, (topics[0].id, 0))
    for key_type, name in ((0, group), (1, transactional_id), (SHARE, share_key(group))):
        root.do(FindCoordinatorRequest(coordinator_keys=[name], key_type=key_type))
    for name in (group, hidden):
        GROUPS_OF.get(api, group_with_offsets)(root, name, topics[0])
    for name in (transactional_id, hidden):
        root.do(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000))
    owners = (f"{prefix}-u", missing, hidden)
    owning = owners[::2] if api in ABOUT_TOKENS else ()
    tokens = tuple(created(root, ROOT, owner=name) for name in owning)
    return Resources(
        prefix,
        topics,
        (group, missing, hidden),
        (transactional_id, missing, hidden),
        owners,
        tokens,
    )


def expire(root: Talk, resources: Resources) -> None:
    """Remove the tokens: who may describe those of all users would see them in other conversations."""
    for token in resources.tokens:
        root.do(ExpireDelegationTokenRequest(hmac=bytes(token.hmac), expiry_time_period_ms=-1))
        while token.token_id in known_to(root):
            pass


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


#: The values of fields by their name, where a zero would end the request early or change too much.
VALUES: Mapping[str, Any] = {
    "acks": 1,
    "allow_auto_topic_creation": False,
    "assignments": [],
    # Who may say something to a quorum is refused for this, and changes nothing.
    "cluster_id": "another",
    "count": 2,
    "include_authorized_operations": True,
    "include_cluster_authorized_operations": True,
    "include_topic_authorized_operations": True,
    "max_bytes": 1_000_000,
    "max_lifetime_ms": -1,
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


def requests_of(
    api: str, version: int, resources: Resources, values: Mapping[str, Any] | None = None
) -> list[Any]:
    """The requests in which an API is asked: about the resources, and once without each of the fields that
    may be left out, which is about all there are. `values` go before those of `VALUES`.
    """
    keys = (*(each.key for each in APIS), *(each.key for each in CONTROLLER_APIS))
    cls = request_type(next(key for key in keys if module_name(key) == api))
    if special := SPECIAL.get(api):
        return special(cls, version, resources)
    made = [Maker(version, resources, values).struct(cls, {})]
    for field in schema_of(cls).fields:
        if version in field.versions and version in field.nullable and api not in ABOUT_THE_BROKER:
            without = Maker(version, resources, values).struct(cls, {})
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
        "resource_type": AclResourceType.TOPIC,
        "resource_type_filter": AclResourceType.TOPIC,
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


def creating_tokens(cls: type, version: int, resources: Resources) -> list[Any]:
    """For each owner, where that can be said, and for who asks."""
    owners = resources.owners if version >= 3 else ()
    return [creation(ROOT, owner=owner) for owner in ((None, None), *(("User", name) for name in owners))]


def describing_tokens(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of each owner, of all of them, and of every user."""
    owners = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=name) for name in resources.owners
    ]
    return [cls(owners=named) for named in (*([each] for each in owners), owners, None)]


def about_tokens(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of others, and one that does not exist."""
    hmacs = [bytes(token.hmac) for token in resources.tokens]
    return [Maker(version, resources, {"hmac": hmac}).struct(cls, {}) for hmac in (*hmacs, b"x")]


def passing_on(cls: type, version: int, resources: Resources) -> list[Any]:
    """What users without and with rights have asked a broker for, in a version whose refusal has no text."""
    return [
        wrapped(request, 0, request_principal=principal_of(user))
        for user in ("may-nothing", "may-describe-cluster", "may-all-but-describe-cluster", "may-all")
        for request in requests_of("describe_quorum", 0, resources)
    ]


def registering_a_controller(cls: type, version: int, resources: Resources) -> list[Any]:
    """One that is none, as a controller registers: Apache Kafka's resigns over what the declaration makes."""
    return [controller_registration(zlib.crc32(resources.prefix.encode()).to_bytes(16, "big"))]


def asking_for_snapshots(cls: type, version: int, resources: Resources) -> list[Any]:
    """Of another cluster: Apache Kafka cannot write the answer that has an error for a topic alone."""
    return [Maker(version, resources).struct(cls, {})]


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
    "controller_registration": registering_a_controller,
    "create_acls": about_acls,
    "create_delegation_token": creating_tokens,
    "delete_acls": about_acls,
    "describe_acls": about_acls,
    "describe_configs": about_configs,
    "describe_delegation_token": describing_tokens,
    "envelope": passing_on,
    "expire_delegation_token": about_tokens,
    "fetch_snapshot": asking_for_snapshots,
    "find_coordinator": finding,
    "incremental_alter_configs": about_configs,
    "renew_delegation_token": about_tokens,
}
#: Of whose tokens there are some.
ABOUT_TOKENS = frozenset({"describe_delegation_token", "expire_delegation_token", "renew_delegation_token"})
#: Apache Kafka fails over a refused request for all users, and leaves it without an answer.
ABOUT_THE_BROKER = frozenset({"describe_log_dirs", "describe_user_scram_credentials"})
