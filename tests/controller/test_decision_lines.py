"""What the active controller tells in the log: each change once, who asked for it, and no secret."""

from __future__ import annotations

import asyncio
import logging

import pytest

from pykafka_broker.authorization.index import Acl
from pykafka_broker.cluster.image import ResourceType
from pykafka_broker.cluster.records import RECORD_TYPES
from pykafka_broker.config.rules import is_secret_config
from pykafka_broker.controller.channel import ChangeRequester
from pykafka_broker.controller.core import events as e
from pykafka_broker.controller.core.state import ControllerState
from pykafka_broker.controller.decision_lines import _CHANGES, Decided, Line, lines
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.records import metadata as m
from pykafka_broker.system.wording import MOST_CHARACTERS
from tests.controller.deciding import NOW_MS, a_cluster, heartbeat, isr_change, registration, stepped, uuid
from tests.support.metadata import Node

ALICE = ChangeRequester("User:alice", "10.0.0.7")


class Story:
    """A cluster of so many brokers, and what its controller tells of the last decision."""

    def __init__(self, brokers: int, node_id: int = 1) -> None:
        self.state: ControllerState = a_cluster(*range(1, brokers + 1), node_id=node_id)
        self.lines: list[Line] = []

    def decide(
        self, event: e.Event, requester: ChangeRequester | None = ALICE, now_ms: int = NOW_MS
    ) -> list[str]:
        """Decide; return the texts of the lines."""
        before, step = self.state.image, stepped(self.state, event, now_ms)
        self.state = step.state
        decided = Decided(event, step.records, before, step.state.image, requester)
        self.lines = list(lines(decided, is_secret_config))
        return [line.text for line in self.lines]

    def create(self, *assignments: tuple[int, ...], name: str = "orders", **configs: str) -> list[str]:
        """A topic whose partitions have these replicas."""
        dashed = tuple((key.replace("_", "."), value) for key, value in configs.items())
        topic_id = uuid(100 + len(self.state.image.topics))
        topic = e.NewTopic(name, topic_id, assignments=tuple(enumerate(assignments)), configs=dashed)
        return self.decide(e.CreateTopics((topic,)))

    def isr(self, leader: int, isr: tuple[int, ...], *partitions: int) -> list[str]:
        """The leader asks for other in-sync replicas."""
        changes = tuple(isr_change(self.state, "orders", each, isr=isr) for each in partitions or (0,))
        epoch = self.state.image.brokers[leader].epoch
        return self.decide(e.AlterPartition(leader, epoch, changes), None)

    def reassign(self, *replicas: tuple[int, ...] | None) -> list[str]:
        wishes = tuple(e.NewReplicas(index, each) for index, each in enumerate(replicas))
        return self.decide(e.AlterPartitionReassignments((e.TopicReassignment("orders", wishes),)))

    def set_config(self, resource_type: int, name: str, *changes: tuple[str, str | None]) -> list[str]:
        operations = tuple((key, 0 if value is not None else 1, value) for key, value in changes)
        change = e.ConfigChange(resource_type, name, operations)
        return self.decide(e.IncrementalAlterConfigs((change,)))


# -- partitions ------------------------------------------------------------------------------------------


def test_topics_are_told_with_those_that_asked_for_them() -> None:
    story = Story(2)
    assert story.create((1, 2), (2, 1), retention_ms="5") == [
        "Created topic orders (partitions: 2, replication factor: 2), as User:alice at 10.0.0.7 asked.",
        "Set configuration retention.ms of topic orders to 5, as User:alice at 10.0.0.7 asked.",
    ]
    more = e.CreatePartitions((e.NewPartitions("orders", 3, ((1, 2),)),))
    assert story.decide(more) == ["Created partition orders-2 on [1,2], as User:alice at 10.0.0.7 asked."]
    deletion = e.DeleteTopics((("orders", bytes(16)),))
    assert story.decide(deletion) == ["Deleted topic orders, as User:alice at 10.0.0.7 asked."]


def test_in_sync_replicas_that_leave_and_come_are_told_with_the_leader_that_says_so() -> None:
    story = Story(3)
    story.create((1, 2, 3), (1, 2, 3))
    assert story.isr(1, (1, 3)) == ["Shrunk the ISR of orders-0 from [1,2,3] to [1,3], as broker 1 asked."]
    assert story.isr(1, (1, 3, 2)) == [
        "Expanded the ISR of orders-0 from [1,3] to [1,3,2], as broker 1 asked."
    ]
    assert story.isr(1, (1,), 0, 1) == [
        "Shrunk the ISRs of 2 partitions: orders-0 from [1,3,2] to [1], orders-1 from [1,2,3] to [1], "
        "as broker 1 asked."
    ]


def test_a_broker_whose_session_is_over_is_told_with_all_that_it_led() -> None:
    story = Story(2, node_id=9)
    story.create(*[(1, 2)] * 200)
    session_end_ms = NOW_MS + story.state.rules.session_timeout_ms
    story.state = story.state._replace(
        sessions={1: story.state.sessions[1]._replace(last_contact_ms=NOW_MS - 1)}
    )
    texts = story.decide(e.ExpireSessions(), None, session_end_ms)
    assert texts == [
        "Fencing broker 1 because its session has timed out.",
        "Changed the leaders of 200 partitions: orders-0 from 1 to 2 (leader epoch 1), "
        "orders-1 from 1 to 2 (leader epoch 1), orders-2 from 1 to 2 (leader epoch 1), "
        "orders-3 from 1 to 2 (leader epoch 1), orders-4 from 1 to 2 (leader epoch 1) and 195 more "
        "because broker 1 was fenced.",
        "Shrunk the ISRs of 200 partitions: orders-0 from [1,2] to [2], orders-1 from [1,2] to [2], "
        "orders-2 from [1,2] to [2], orders-3 from [1,2] to [2], orders-4 from [1,2] to [2] and 195 more "
        "because broker 1 was fenced.",
    ]


def test_the_life_of_a_broker_is_told() -> None:
    story = Story(2)
    story.create((2,))
    assert story.decide(heartbeat(story.state, 2, want_shutdown=True), None) == [
        "Began the controlled shutdown of broker 2.",
        "Changed the leader of orders-0 from 2 to none (leader epoch 1) because broker 2 shuts down.",
        "Shrunk the ISR of orders-0 from [2] to [] because broker 2 shuts down.",
    ]
    assert story.decide(heartbeat(story.state, 2, want_shutdown=True), None) == [
        "Fencing broker 2 because it shuts down."
    ]
    again = story.decide(registration(2, incarnation_id=uuid(7)), None)
    epoch = story.state.image.brokers[2].epoch
    assert again == [f"Registered broker 2 at PLAINTEXT://broker2:9092 (broker epoch {epoch})."]
    assert story.decide(heartbeat(story.state, 2), None) == [
        "Unfenced broker 2 because it has caught up with its registration.",
        "Changed the leader of orders-0 from none to 2 (leader epoch 2) because broker 2 was unfenced.",
        "Expanded the ISR of orders-0 from [] to [2] because broker 2 was unfenced.",
    ]


def test_a_broker_that_is_forgotten_is_told_with_the_one_that_wants_that() -> None:
    story = Story(2)
    story.create((1, 2))
    assert story.decide(e.UnregisterBroker(1)) == [
        "Unregistered broker 1, as User:alice at 10.0.0.7 asked.",
        "Changed the leader of orders-0 from 1 to 2 (leader epoch 1), as User:alice at 10.0.0.7 asked.",
        "Shrunk the ISR of orders-0 from [1,2] to [2], as User:alice at 10.0.0.7 asked.",
    ]


def test_a_reassignment_is_told_when_it_starts_and_when_it_is_over() -> None:
    story = Story(4)
    story.create((1, 2))
    assert story.reassign((3, 4)) == [
        "Started the reassignment of orders-0 from [1,2] to [3,4], as User:alice at 10.0.0.7 asked."
    ]
    assert story.isr(1, (1, 2, 3)) == [
        "Expanded the ISR of orders-0 from [1,2] to [1,2,3], as broker 1 asked."
    ]
    assert story.isr(1, (1, 2, 3, 4)) == [
        "Changed the leader of orders-0 from 1 to 3 (leader epoch 1), as broker 1 asked.",
        "Expanded the ISR of orders-0 from [1,2,3] to [1,2,3,4], as broker 1 asked.",
        "Completed the reassignment of orders-0 to [3,4], as broker 1 asked.",
    ]


def test_a_replica_that_takes_the_place_of_the_only_one_joins_it_first() -> None:
    """It was "Expanded the ISR of orders-0 from 1 to 2", which reads like two counts."""
    story = Story(2)
    story.create((1,))
    story.reassign((2,))
    assert story.isr(1, (1, 2)) == [
        "Changed the leader of orders-0 from 1 to 2 (leader epoch 1), as broker 1 asked.",
        "Expanded the ISR of orders-0 from [1] to [1,2], as broker 1 asked.",
        "Completed the reassignment of orders-0 to [2], as broker 1 asked.",
    ]


def test_a_reassignment_that_only_adds_or_only_removes_replicas_is_told_when_it_is_over() -> None:
    story = Story(3)
    story.create((1, 2))
    story.reassign((1, 2, 3))
    assert story.isr(1, (1, 2, 3)) == [
        "Expanded the ISR of orders-0 from [1,2] to [1,2,3], as broker 1 asked.",
        "Completed the reassignment of orders-0 to [1,2,3], as broker 1 asked.",
    ]
    assert story.reassign((1, 2))[-1] == (
        "Completed the reassignment of orders-0 to [1,2], as User:alice at 10.0.0.7 asked."
    )


def test_a_topic_that_nobody_asked_for_has_a_reason() -> None:
    topic = e.NewTopic("orders", uuid(100), assignments=((0, (1,)),))
    assert Story(1).decide(e.CreateTopics((topic,)), None) == [
        "Created topic orders (partitions: 1, replication factor: 1) because it is in use."
    ]


def test_a_reassignment_that_is_called_off_and_one_that_needs_no_copies_are_told() -> None:
    story = Story(3)
    story.create((1, 2))
    story.reassign((1, 3))
    assert story.reassign(None) == [
        "Cancelled the reassignment of orders-0 back to [1,2], as User:alice at 10.0.0.7 asked."
    ]
    assert story.reassign((2, 1)) == [
        "Completed the reassignment of orders-0 to [2,1], as User:alice at 10.0.0.7 asked."
    ]


def test_an_election_that_may_lose_records_is_a_warning() -> None:
    story = Story(3)
    story.create((1, 2))
    story.isr(1, (1,))
    story.decide(heartbeat(story.state, 1, want_fence=True), None)
    election = e.ElectLeaders(e.ElectionType.UNCLEAN, (e.TopicPartitions("orders", (0,)),))
    assert story.decide(election)[0] == (
        "UNCLEAN election, which may have lost records, changed the leader of "
        "orders-0 from none to 2 (leader epoch 2), as User:alice at 10.0.0.7 asked."
    )
    assert story.lines[0].level == logging.WARNING


# -- configurations, quotas, users -----------------------------------------------------------------------


def test_configurations_are_told_in_one_line_for_each_decision() -> None:
    story = Story(1)
    assert story.set_config(ResourceType.BROKER, "", ("log.retention.ms", "7"), ("num.io.threads", "2")) == [
        "Set 2 configurations: log.retention.ms of all brokers to 7, num.io.threads of all brokers to 2, "
        "as User:alice at 10.0.0.7 asked."
    ]
    assert story.set_config(ResourceType.BROKER, "", ("log.retention.ms", None)) == [
        "Removed configuration log.retention.ms of all brokers, as User:alice at 10.0.0.7 asked."
    ]
    [line] = story.lines
    assert line.logger.name == "org.apache.kafka.controller.ConfigurationControlManager"
    assert line.level == logging.INFO


def test_what_was_not_set_is_not_told_as_removed() -> None:
    story = Story(1)
    unset = (("log.retention.ms", None), ("num.io.threads", None))
    assert story.set_config(ResourceType.BROKER, "1", *unset) == []
    story.set_config(ResourceType.BROKER, "1", ("num.io.threads", "2"))
    assert story.set_config(ResourceType.BROKER, "1", *unset) == [
        "Removed configuration num.io.threads of broker 1, as User:alice at 10.0.0.7 asked."
    ]
    removal = e.QuotaAlteration((("user", "bob"),), (("producer_byte_rate", None),))
    assert story.decide(e.AlterClientQuotas((removal,))) == []


@pytest.mark.parametrize(
    "key",
    ["ssl.keystore.password", "listener.name.a.plain.sasl.jaas.config", "a.plugin.key", "sasl.jaas.config"],
)
def test_a_value_that_is_or_may_be_a_secret_is_not_told(key: str) -> None:
    [text] = Story(1).set_config(ResourceType.BROKER, "1", (key, "hunter2"))
    assert text == f"Set configuration {key} of broker 1 to [hidden], as User:alice at 10.0.0.7 asked."


def test_quotas_are_told() -> None:
    story = Story(1)
    entity = (("client-id", None), ("user", "bob"))
    changes = (("producer_byte_rate", 1000.0), ("request_percentage", 12.5))
    assert story.decide(e.AlterClientQuotas((e.QuotaAlteration(entity, changes),))) == [
        "Set 2 quotas: producer_byte_rate of the default client-id, user bob to 1000, "
        "request_percentage of the default client-id, user bob to 12.5, as User:alice at 10.0.0.7 asked."
    ]
    removal = e.QuotaAlteration(entity, (("producer_byte_rate", None),))
    assert story.decide(e.AlterClientQuotas((removal,))) == [
        "Removed quota producer_byte_rate of the default client-id, user bob, "
        "as User:alice at 10.0.0.7 asked."
    ]


def test_users_are_told_and_never_what_they_log_in_with() -> None:
    story = Story(1)
    credential = e.ScramUpsertion("bob", 1, 4096, b"thesalt", b"thepassword")
    told = [
        *story.decide(e.AlterScramCredentials((), (credential,))),
        *story.decide(e.AlterScramCredentials((), (credential,))),
        *story.decide(e.AlterScramCredentials((e.ScramDeletion("bob", 1),), ())),
    ]
    assert told == [
        "Created SCRAM credential SCRAM-SHA-256 of user bob, as User:alice at 10.0.0.7 asked.",
        "Changed SCRAM credential SCRAM-SHA-256 of user bob, as User:alice at 10.0.0.7 asked.",
        "Removed SCRAM credential SCRAM-SHA-256 of user bob, as User:alice at 10.0.0.7 asked.",
    ]


def test_a_token_that_has_expired_has_a_reason() -> None:
    image = Story(1).state.image
    removal = m.RemoveDelegationTokenRecord(token_id="t")
    [line] = lines(Decided(e.RemoveExpiredTokens(), (removal,), image, image), is_secret_config)
    assert line.text == "Removed delegation token t because its time is over."


def test_acls_and_features_are_told() -> None:
    story = Story(1)
    acl = Acl(2, "orders", 4, "User:bob", "*", 3, 3)
    acls = "ALLOW READ on TOPIC:PREFIXED:orders of User:bob on host *, as User:alice at 10.0.0.7 asked."
    assert story.decide(e.CreateAcls((acl,))) == [f"Created ACL {acls}"]
    everything = e.AclFilter(1, None, 1, None, None, 1, 1)
    assert story.decide(e.DeleteAcls((everything,))) == [f"Removed ACL {acls}"]
    update = e.FeatureUpdate("share.version", 0, 2)
    assert story.decide(e.UpdateFeatures((update,), False, None)) == [
        "Set feature share.version from 1 to 0, as User:alice at 10.0.0.7 asked."
    ]


def test_names_that_clients_choose_neither_end_a_line_nor_fill_the_log() -> None:
    story = Story(1)
    name = "bob\n[2026-01-01] INFO all is well" + "x" * 1000
    [text] = story.decide(e.AlterScramCredentials((), (e.ScramUpsertion(name, 1, 4096, b"s", b"p"),)))
    assert text.isprintable() and r"bob\n[2026" in text
    assert len(text) < MOST_CHARACTERS + 100


def test_every_record_that_a_controller_writes_is_told_or_known_to_say_nothing() -> None:
    quiet = {
        m.ProducerIdsRecord,
        m.RegisterControllerRecord,
        m.ClearElrRecord,
        m.NoOpRecord,
        m.ZkMigrationStateRecord,
        m.BeginTransactionRecord,
        m.EndTransactionRecord,
        m.AbortTransactionRecord,
        # Of releases before Kafka 4.
        m.FenceBrokerRecord,
        m.UnfenceBrokerRecord,
    }
    assert set(RECORD_TYPES) == {*_CHANGES, *quiet, m.PartitionChangeRecord}


# -- when ------------------------------------------------------------------------------------------------


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [r.getMessage() for r in caplog.records if r.name.startswith("org.apache.kafka.controller")]
    caplog.clear()
    return found


async def test_a_decision_is_told_when_it_is_committed_and_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = Node()
    controller = await node.start()
    told(caplog)
    node.free.clear()
    asked = controller.ask(e.CreateTopics((e.NewTopic("orders"),)), requester=ALICE)
    creation = asyncio.ensure_future(asked)
    for _ in range(20):
        await asyncio.sleep(0)
    assert told(caplog) == []

    node.free.set()
    await creation
    text = "Created topic orders (partitions: 1, replication factor: 1), as User:alice at 10.0.0.7 asked."
    assert told(caplog) == [f"[QuorumController id=1] {text}"]
    await node.create_topics(e.NewTopic("nobody"))
    assert "User" not in told(caplog)[0], "a node asks for itself"
    await node.close()

    after = Node(node.files.killed())
    await after.replica.start()
    assert told(caplog) == [], "who replays the log tells nothing"


async def test_what_a_controller_has_not_seen_committed_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    node = Node()
    await node.start()
    told(caplog)
    node.free.clear()
    creation = asyncio.ensure_future(node.create_topics(e.NewTopic("orders")))
    await asyncio.sleep(0)
    node.role.end(KafkaError(ErrorCode.NOT_CONTROLLER))
    node.free.set()
    await creation
    await asyncio.sleep(0)
    assert told(caplog) == []


async def test_nothing_is_put_into_words_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    node = Node()
    await node.start()
    await node.create_topics(e.NewTopic("orders"))
    assert told(caplog) == []
