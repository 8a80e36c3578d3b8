"""What conversations leave behind in a cluster, and the requests that remove it.

One node keeps the same of each conversation as the other side. In a cluster a kill may break a conversation
off on one side alone, and members and transactions of earlier parts end by their time-outs, on each side at
another time: conversations about all topics, groups, configs, quotas or users would see that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from interop.conformance import consumer_groups, share_groups, streams
from interop.conformance.apis import alter_client_quotas as quotas
from interop.conformance.apis import alter_user_scram_credentials as scram
from interop.conformance.apis import describe_acls as acls
from interop.conformance.apis import incremental_alter_configs as altering
from interop.conformance.apis import update_features as features
from interop.conformance.apis.describe_configs import BROKER, CLIENT_METRICS, GROUP, describe, resource
from interop.conformance.groups import leaving
from interop.conformance.transactions import init
from pykafka_broker.config.describe import ConfigSource
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.protocol.messages.api_versions import ApiVersionsRequest
from pykafka_broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from pykafka_broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from pykafka_broker.protocol.messages.describe_groups import DescribeGroupsRequest
from pykafka_broker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from pykafka_broker.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from pykafka_broker.protocol.messages.leave_group import MemberIdentity
from pykafka_broker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest
from pykafka_broker.protocol.messages.list_transactions import ListTransactionsRequest
from pykafka_broker.protocol.messages.metadata import MetadataRequest
from pykafka_broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from pykafka_broker.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest

#: Sends a request to one node; its answer.
Ask = Callable[[Any], Any]

#: `member_type` of a member of a consumer group that speaks the classic protocol.
CLASSIC_MEMBER = 0
#: States of transactions that are not over.
UNFINISHED = ("Ongoing", "PrepareCommit", "PrepareAbort")
ANY = 1


class LaidOut(NamedTuple):
    """What a cluster has before its first conversation, and keeps."""

    topics: frozenset[str]
    #: The level of each feature.
    features: Mapping[str, int]
    #: Keys that are set for all brokers: Apache Kafka's controller sets min.insync.replicas.
    broker_keys: frozenset[str]


def laid_out(ask: Ask) -> LaidOut:
    return LaidOut(
        frozenset(_topic_names(ask)), _levels(ask), frozenset(_keys_set(ask, BROKER, "").get("", ()))
    )


def removed(ask: Ask, node_id: int, kept: LaidOut) -> list[str]:
    """Ask a node to remove what it shows; the APIs that were asked, none if nothing is left.

    Errors are not looked at: what could not be removed is shown again.
    """
    asked = []
    for request in removals(ask, node_id, kept):
        ask(request)
        asked.append(API_NAMES[request.api_key])
    return asked


def removals(ask: Ask, node_id: int, kept: LaidOut) -> Iterator[Any]:
    """The requests that remove what a node shows, each to be sent before the next one is made.

    Quotas come first, as they slow down all that follows; transactions before the groups of which they hold
    offsets; groups before the topics of their offsets.
    """
    yield from _quotas(ask)
    yield from _features(ask, kept.features)
    yield from _transactions(ask)
    yield from _groups(ask)
    yield from _topics(ask, kept.topics)
    yield from _configs(ask, node_id, kept.broker_keys)
    yield from _scram_credentials(ask)
    yield from _tokens(ask)
    yield from _acls(ask)


def _quotas(ask: Ask) -> Iterator[Any]:
    entries = [
        quotas.entry(
            {each.entity_type: each.entity_name for each in found.entity},
            **{value.key: None for value in found.values},
        )
        for found in ask(quotas.describing()).entries or ()
    ]
    if entries:
        yield quotas.altering(*entries)


def _levels(ask: Ask) -> dict[str, int]:
    """The finalized level of each feature above 0."""
    asking = ApiVersionsRequest(client_software_name="conformance", client_software_version="1")
    return {each.name: each.max_version_level for each in ask(asking).finalized_features}


def _features(ask: Ask, kept: Mapping[str, int]) -> Iterator[Any]:
    now = _levels(ask)
    for name in sorted({*now, *kept}):
        level, wanted = now.get(name, 0), kept.get(name, 0)
        if level != wanted:
            change = features.UPGRADE if wanted > level else features.SAFE_DOWNGRADE
            yield features.updating(features.to(name, wanted, change))


def _transactions(ask: Ask) -> Iterator[Any]:
    """Of this coordinator: who initialises their producers anew aborts them."""
    listing = ListTransactionsRequest(state_filters=list(UNFINISHED), producer_id_filters=[])
    for each in ask(listing).transaction_states:
        yield init(each.transactional_id)


def _groups(ask: Ask) -> Iterator[Any]:
    """Those of this coordinator."""
    groups = ask(ListGroupsRequest()).groups
    for group in groups:
        if group.group_state != "Empty":
            yield from _departures(ask, group.group_id, group.group_type.lower())
    if groups:
        yield DeleteGroupsRequest(groups_names=[group.group_id for group in groups])


def _departures(ask: Ask, group: str, kind: str) -> Iterator[Any]:
    """What the members of a group would say when they leave."""
    described: dict[str, Any] = {"group_ids": [group], "include_authorized_operations": False}
    if kind == "classic":
        for each in ask(DescribeGroupsRequest(groups=[group])).groups[0].members:
            yield leaving(group, _identity(each.member_id, each.group_instance_id))
    elif kind == "consumer":
        for each in ask(ConsumerGroupDescribeRequest(**described)).groups[0].members:
            if each.member_type == CLASSIC_MEMBER:
                yield leaving(group, _identity(each.member_id, each.instance_id))
            else:
                gone = consumer_groups.LEAVE
                yield consumer_groups.beating(group, each.member_id, gone, instance_id=each.instance_id)
    elif kind == "share":
        for each in ask(ShareGroupDescribeRequest(**described)).groups[0].members:
            yield share_groups.beating(group, each.member_id, share_groups.LEAVE)
    elif kind == "streams":
        for each in ask(StreamsGroupDescribeRequest(**described)).groups[0].members:
            yield streams.beating(group, each.member_id, streams.LEAVE)


def _identity(member_id: str, instance_id: str | None) -> MemberIdentity:
    """As an administrator names a member: a static one by its instance alone."""
    return MemberIdentity(member_id="" if instance_id else member_id, group_instance_id=instance_id)


def _topic_names(ask: Ask) -> list[str]:
    return [str(topic.name) for topic in ask(MetadataRequest(topics=None)).topics]


def _topics(ask: Ask, kept: frozenset[str]) -> Iterator[Any]:
    left = [name for name in _topic_names(ask) if name not in kept]
    if left:
        topics = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in left]
        yield DeleteTopicsRequest(topics=topics, topic_names=[], timeout_ms=30_000)


def _keys_set(ask: Ask, kind: int, *names: str) -> dict[str, list[str]]:
    """The keys that are set on each of these resources of one kind; nothing of one on which none is set."""
    if not names:
        return {}
    described = ask(describe(*(resource(kind, name) for name in names))).results
    found = {
        each.resource_name: [
            config.name
            for config in each.configs
            if config.config_source == _source_of(each.resource_type, each.resource_name)
        ]
        for each in described
    }
    return {name: keys for name, keys in found.items() if keys}


def _source_of(kind: int, name: str) -> ConfigSource:
    """What DescribeConfigs calls the source of a value that is set on this very resource."""
    if kind == BROKER:
        return ConfigSource.DYNAMIC_BROKER if name else ConfigSource.DYNAMIC_DEFAULT_BROKER
    return ConfigSource.GROUP if kind == GROUP else ConfigSource.CLIENT_METRICS


def _configs(ask: Ask, node_id: int, kept: frozenset[str]) -> Iterator[Any]:
    """Those of groups, of subscriptions to client metrics, of all brokers and of this one."""
    listed = ask(ListConfigResourcesRequest(resource_types=[GROUP, CLIENT_METRICS])).config_resources
    named = {
        kind: [each.resource_name for each in listed if each.resource_type == kind]
        for kind in (GROUP, CLIENT_METRICS)
    }
    for kind, names in {**named, BROKER: ["", str(node_id)]}.items():
        for name, keys in _keys_set(ask, kind, *names).items():
            stays = kept if (kind, name) == (BROKER, "") else frozenset()
            changes = [(key, altering.DELETE, None) for key in keys if key not in stays]
            if changes:
                yield altering.alter(altering.resource(kind, name, *changes))


def _scram_credentials(ask: Ask) -> Iterator[Any]:
    """A request may name a user once."""
    users = ask(DescribeUserScramCredentialsRequest(users=None)).results
    mechanisms = {each.mechanism for user in users for each in user.credential_infos}
    for mechanism in sorted(mechanisms):
        yield scram.altering(
            *(
                scram.drop(user.user, mechanism)
                for user in users
                if mechanism in {each.mechanism for each in user.credential_infos}
            )
        )


def _tokens(ask: Ask) -> Iterator[Any]:
    """Those that the run may expire, as a renewer; none where there are no tokens."""
    for each in ask(DescribeDelegationTokenRequest(owners=None)).tokens:
        yield ExpireDelegationTokenRequest(hmac=bytes(each.hmac), expiry_time_period_ms=-1)


def _acls(ask: Ask) -> Iterator[Any]:
    """By the resource, as Apache Kafka removes no more than 10,000 at once; none without an authorizer."""
    for each in ask(acls.describing()).resources:
        about_it = DeleteAclsFilter(
            resource_type_filter=each.resource_type,
            resource_name_filter=each.resource_name,
            pattern_type_filter=each.pattern_type,
            principal_filter=None,
            host_filter=None,
            operation=ANY,
            permission_type=ANY,
        )
        yield DeleteAclsRequest(filters=[about_it])
