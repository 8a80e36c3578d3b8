"""The log of the controller names the client that has asked for a change, whichever API it used."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from pykafka_broker.apis.add_raft_voter import add_raft_voter
from pykafka_broker.apis.context import ForwardedContext
from pykafka_broker.apis.remove_raft_voter import remove_raft_voter
from pykafka_broker.apis.told_changes import (
    GROUPS,
    LOGGERS,
    LOGS,
    OFFSETS,
    REPLICAS,
    REQUESTS,
    VOTERS_ADDED,
    VOTERS_REMOVED,
)
from pykafka_broker.cluster.image import ClusterImage
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.messages import add_raft_voter as adding
from pykafka_broker.protocol.messages import alter_configs as replacing
from pykafka_broker.protocol.messages import alter_replica_log_dirs as moving
from pykafka_broker.protocol.messages import delete_records as deleting
from pykafka_broker.protocol.messages import incremental_alter_configs as altering
from pykafka_broker.protocol.messages import offset_delete as forgetting
from pykafka_broker.protocol.messages import remove_raft_voter as removing
from pykafka_broker.protocol.messages import write_txn_markers as marking
from pykafka_broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from pykafka_broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from pykafka_broker.protocol.messages.delete_groups import DeleteGroupsRequest
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.unregister_broker import UnregisterBrokerRequest
from pykafka_broker.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from pykafka_broker.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from pykafka_broker.raft.core.messages import AddVoter, ChangeAnswer, RemoveVoter
from pykafka_broker.testing.home import Home
from pykafka_broker.testing.user import User
from tests.apis import delegation_tokens as tokens
from tests.apis.quotas import setting
from tests.apis.test_envelope import creation, wrapped
from tests.support.scram import altering as altering_users
from tests.support.scram import put

TOPIC = 2
#: A logger that says nothing here.
LOGGER = "kafka.log.LogCleaner"


def configs(value: str) -> altering.IncrementalAlterConfigsRequest:
    change = altering.AlterableConfig(name="retention.ms", config_operation=0, value=value)
    resource = altering.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[change])
    return altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


def all_configs(value: str) -> replacing.AlterConfigsRequest:
    config = replacing.AlterableConfig(name="retention.ms", value=value)
    resource = replacing.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[config])
    return replacing.AlterConfigsRequest(resources=[resource], validate_only=False)


#: Each request with its version, and how the line begins.
CHANGES: list[tuple[Any, int, str]] = [
    (creation("orders"), 7, "Created topic orders (partitions: 1, replication factor: 1)"),
    (
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="orders", count=2, assignments=None)],
            timeout_ms=1_000,
            validate_only=False,
        ),
        3,
        "Created partition orders-1 on [1]",
    ),
    (configs("5"), 1, "Set configuration retention.ms of topic orders to 5"),
    (all_configs("6"), 2, "Set configuration retention.ms of topic orders to 6"),
    (
        AlterClientQuotasRequest(
            entries=[setting({"user": "bob"}, producer_byte_rate=9.0)], validate_only=False
        ),
        1,
        "Set quota producer_byte_rate of user bob to 9",
    ),
    (altering_users(put("bob")), 0, "Created SCRAM credential SCRAM-SHA-256 of user bob"),
    (tokens.creation(), 3, "Created delegation token "),
    (
        UpdateFeaturesRequest(
            feature_updates=[FeatureUpdateKey(feature="share.version", max_version_level=0, upgrade_type=2)]
        ),
        1,
        "Set feature share.version from 1 to 0",
    ),
    (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="orders", topic_id=bytes(16))], timeout_ms=1_000),
        6,
        "Deleted topic orders",
    ),
    (UnregisterBrokerRequest(broker_id=1), 0, "Unregistered broker 1"),
]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [r.getMessage() for r in caplog.records if r.name.startswith("org.apache.kafka.controller.")]
    caplog.clear()
    return [text for text in found if "Becoming the active controller" not in text]


async def test_each_change_is_told_with_the_user_and_the_address(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with tokens.a_broker() as home, tokens.signed_in(home) as alice:
        told(caplog)
        for request, version, begins in CHANGES:
            await alice.send(request, version)
            line, *more = told(caplog)
            assert line.startswith(f"[QuorumController id=1] {begins}"), line
            assert all(text.endswith(", as User:alice at 127.0.0.1 asked.") for text in (line, *more))


def markers(client_transaction: int) -> WriteTxnMarkersRequest:
    topic = marking.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])
    marker = marking.WritableTxnMarker(
        producer_id=client_transaction,
        producer_epoch=0,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersRequest(markers=[marker])


def logger_level(level: str | None) -> altering.IncrementalAlterConfigsRequest:
    operation = 0 if level is not None else 1
    change = altering.AlterableConfig(name=LOGGER, config_operation=operation, value=level)
    resource = altering.AlterConfigsResource(resource_type=8, resource_name="1", configs=[change])
    return altering.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


async def test_a_change_on_which_no_controller_decides_is_told_by_the_broker(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with tokens.a_broker() as home, tokens.signed_in(home) as alice:
        await alice.create_topic("orders")
        await alice.produce("orders", b"a", b"b")
        await alice.commit("readers", "orders", 1)
        [path] = (log_dir.path for log_dir in home.broker.node.logs.dirs.of_partitions)
        orders = deleting.DeleteRecordsPartition(partition_index=0, offset=1)
        changes: list[tuple[Any, int, str, str, str]] = [
            (
                deleting.DeleteRecordsRequest(
                    topics=[deleting.DeleteRecordsTopic(name="orders", partitions=[orders])], timeout_ms=1_000
                ),
                2,
                LOGS,
                "INFO",
                "Incremented log start offset due to client delete records request: orders-0 to 1",
            ),
            (
                forgetting.OffsetDeleteRequest(
                    group_id="readers",
                    topics=[
                        forgetting.OffsetDeleteRequestTopic(
                            name="orders",
                            partitions=[forgetting.OffsetDeleteRequestPartition(partition_index=0)],
                        )
                    ],
                ),
                0,
                OFFSETS,
                "INFO",
                "Deleted offsets of group readers: orders-0",
            ),
            (
                DeleteGroupsRequest(groups_names=["readers", "nobody"]),
                2,
                GROUPS,
                "INFO",
                "The following groups were deleted: readers",
            ),
            (
                moving.AlterReplicaLogDirsRequest(
                    dirs=[
                        moving.AlterReplicaLogDir(
                            path=path,
                            topics=[moving.AlterReplicaLogDirTopic(name="orders", partitions=[0])],
                        )
                    ]
                ),
                2,
                REPLICAS,
                "INFO",
                f"Altered log directories: orders-0 to {path}",
            ),
            (
                markers(7),
                1,
                REQUESTS,
                "INFO",
                "Ended transactions: aborted that of producer 7 with epoch 0 in orders-0",
            ),
            (logger_level("ERROR"), 1, LOGGERS, "WARNING", f"Updated the log level of {LOGGER} to ERROR"),
            (logger_level(None), 1, LOGGERS, "WARNING", f"Unset the log level of {LOGGER}"),
        ]
        for request, version, part, level, text in changes:
            caplog.clear()
            await alice.send(request, version)
            found = [record for record in caplog.records if record.name == part]
            assert [(record.levelname, record.getMessage()) for record in found] == [
                (level, f"{text}, as User:alice at 127.0.0.1 asked.")
            ]


async def test_offsets_that_no_member_sets_are_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with tokens.a_broker() as home, tokens.signed_in(home) as alice:
        await alice.create_topic("orders")
        await alice.find_coordinator("readers")
        too_long = "m" * 5_000
        refused = await alice.try_to_commit("readers", "orders", 4, metadata=too_long)
        assert refused is ErrorCode.OFFSET_METADATA_TOO_LARGE
        for offset in (5, 6):
            await alice.commit("readers", "orders", offset)
    assert [record.getMessage() for record in caplog.records if record.name == OFFSETS] == [
        "Set offsets of group readers without being a member: orders-0 to 5, "
        "as User:alice at 127.0.0.1 asked."
    ]


async def test_voters_that_come_and_go_are_told_with_those_that_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Leader:
        """Agrees to everything, or to nothing."""

        answer = ChangeAnswer(ErrorCode.NONE)
        metadata = SimpleNamespace(image=ClusterImage(cluster_id="c"))

        @property
        def controller(self) -> Leader:
            return self

        async def change_voters(self, _: AddVoter | RemoveVoter) -> ChangeAnswer:
            return self.answer

    caplog.set_level(logging.INFO)
    directory_id = b"d" * 16
    node = Leader()
    ctx: Any = ForwardedContext(node, None, 80, 1, 7, "admin", "User:alice", "/10.0.0.7")  # type: ignore[arg-type]
    place = adding.Listener(name="CONTROLLER", host="host", port=9093)
    come = adding.AddRaftVoterRequest(
        cluster_id="c", timeout_ms=1, voter_id=3, voter_directory_id=directory_id, listeners=[place]
    )
    go = removing.RemoveRaftVoterRequest(cluster_id="c", voter_id=3, voter_directory_id=directory_id)
    for _ in range(2):
        await add_raft_voter.handle(come, ctx)
        await remove_raft_voter.handle(go, ctx)
        node.answer = ChangeAnswer(ErrorCode.REQUEST_TIMED_OUT, "")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        (VOTERS_ADDED, "Added voter 3 of the metadata quorum, as User:alice at 10.0.0.7 asked."),
        (VOTERS_REMOVED, "Removed voter 3 of the metadata quorum, as User:alice at 10.0.0.7 asked."),
    ]


async def test_of_a_request_that_a_broker_passes_on_its_client_is_told(
    combined: Home, controllers: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    address = bytes([10, 0, 0, 7])
    for request, version in ((creation("orders"), 7), (configs("5"), 1), (all_configs("6"), 2)):
        told(caplog)
        answer = await controllers.send(wrapped(request, version, client_host_address=address), 0)
        assert answer.error_code == 0
        [line] = told(caplog)
        assert line.endswith(", as User:alice at 10.0.0.7 asked.")
