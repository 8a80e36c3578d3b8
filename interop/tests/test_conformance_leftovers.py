"""What a conversation that was broken off leaves behind does not meet the next one."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from interop.conformance import acl_matrix, consumer_groups, share_groups, streams
from interop.conformance.acl_requests import ROOT
from interop.conformance.apis import alter_client_quotas as quotas
from interop.conformance.apis import alter_user_scram_credentials as scram
from interop.conformance.apis import create_delegation_token as tokens
from interop.conformance.apis import update_features as features
from interop.conformance.apis.describe_configs import BROKER, CLIENT_METRICS, GROUP, setting
from interop.conformance.groups import a_group, a_member
from interop.conformance.leftovers import laid_out, removals, removed
from interop.conformance.play import OUR_SETTINGS
from interop.conformance.shares import SHARE
from interop.conformance.talk import Side, Subject, Talk
from interop.conformance.transactions import TRANSACTION, Producer
from interop.world import eventually
from pykafka_broker import Broker, load_config
from pykafka_broker.client.blocking import BlockingConnection
from pykafka_broker.client.core.addresses import parse_address
from pykafka_broker.client.core.connection import ClientSecurity, Identity
from pykafka_broker.client.security import login_of
from pykafka_broker.protocol.acls import AclOperation, AclPermission, AclResourceType, PatternType
from pykafka_broker.protocol.messages import API_NAMES
from pykafka_broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from pykafka_broker.protocol.messages.find_coordinator import FindCoordinatorRequest

NODE_ID = 1
AS_ROOT = Identity(security=ClientSecurity(login=login_of(ROOT, ROOT, "PLAIN")))
SETTINGS = {**OUR_SETTINGS, **acl_matrix.SETTINGS}
#: Each is asked to remove something.
REMOVE = {
    "AlterClientQuotas",
    "AlterUserScramCredentials",
    "ConsumerGroupHeartbeat",
    "DeleteAcls",
    "ExpireDelegationToken",
    "DeleteGroups",
    "DeleteTopics",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "LeaveGroup",
    "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat",
    "UpdateFeatures",
}


def leave_something_of_everything(talk: Talk) -> None:
    topic = talk.topic()
    Producer(talk).adds(topic)
    a_member(talk, a_group(talk, "classic"))
    a_member(talk, a_group(talk, "static"), instance="instance")
    consumer, share, stream = (a_group(talk, label) for label in ("consumer", "share", "streams"))
    for joining in (
        consumer_groups.joining(consumer, "member", topic, instance_id="instance"),
        share_groups.joining(share, "member", topic),
        streams.joining(stream, "member", topic),
    ):
        talk.do(joining)
    setting(talk, GROUP, consumer, consumer_session_timeout_ms="50000")
    setting(talk, CLIENT_METRICS, talk.name("metrics"), interval_ms="1000")
    setting(talk, BROKER, "", log_cleaner_threads="2")
    setting(talk, BROKER, str(NODE_ID), num_io_threads="3")
    both = quotas.entry({"user": None, "client_id": talk.name("client")}, producer_byte_rate=1e9)
    talk.do(quotas.altering(quotas.entry({"user": None}, request_percentage=90.0), both))
    talk.do(scram.altering(scram.put(talk.name("user"))))
    talk.do(scram.altering(scram.put(talk.name("user"), scram.SHA_512)))
    creation = AclCreation(
        resource_type=AclResourceType.TOPIC,
        resource_name=topic.name,
        resource_pattern_type=PatternType.PREFIXED,
        principal="User:somebody",
        host="*",
        operation=AclOperation.READ,
        permission_type=AclPermission.DENY,
    )
    talk.do(CreateAclsRequest(creations=[creation]))
    talk.do(tokens.creation(ROOT))
    talk.do(features.updating(features.to(features.ELR, 0, features.SAFE_DOWNGRADE)))


def test_nothing_is_left_of_a_conversation_but_what_was_there_before(tmp_path: Path) -> None:
    config = load_config(data_dir=tmp_path / "data", listen="127.0.0.1:0", overrides=SETTINGS)
    with (
        Broker(config) as broker,
        closing(BlockingConnection(parse_address(broker.bootstrap_servers), identity=AS_ROOT)) as connection,
    ):
        side = Side("ours", broker.bootstrap_servers, {}, frozenset())
        with closing(Talk(Subject("metadata", "metadata/broken_off", 0), side)) as talk:
            talk.log_in(ROOT)
            for key_type, key in ((0, "a"), (TRANSACTION, "a"), (SHARE, f"a:{'A' * 22}:0")):
                talk.do(FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type))
            kept = laid_out(connection.send)
            assert list(removals(connection.send, NODE_ID, kept)) == []

            leave_something_of_everything(talk)

        def shown() -> set[str]:
            return {API_NAMES[each.api_key] for each in removals(connection.send, NODE_ID, kept)}

        eventually(lambda: shown() == REMOVE, "all of it is shown")
        eventually(lambda: not removed(connection.send, NODE_ID, kept), "nothing of it is left")
        assert laid_out(connection.send) == kept
