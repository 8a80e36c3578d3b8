"""The comparison notices differences of every kind: each is planted in the answers of one of two brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from interop.conformance.accepted import Accepted
from interop.conformance.compare import differences
from interop.conformance.conversation import Case, Conversation, cases, choose
from interop.conformance.groups import a_group, a_member
from interop.conformance.normalise import Names, Tree, an_epoch, tree_of
from interop.conformance.play import (
    OUR_SETTINGS,
    Result,
    Verdict,
    judge,
    play,
    sample,
    side_of,
    stale,
    unnoticed,
)
from interop.conformance.talk import CLOSED, E, Side, Talk
from interop.conformance.tampering import Change, Tampering
from pykafka_broker.protocol.compile import encode
from pykafka_broker.protocol.fields import blank
from pykafka_broker.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from pykafka_broker.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from pykafka_broker.protocol.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)
from pykafka_broker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykafka_broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from pykafka_broker.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from pykafka_broker.testing.processes import PykafkaBroker

#: How many of the declared conversations are sabotaged.
SABOTAGED = 60


@dataclass
class World:
    left: PykafkaBroker
    right: PykafkaBroker

    def compare(
        self, api: str, version: int, function: Callable[[Talk], None], change: Change, accepted: Any = ()
    ) -> Result:
        """The same conversation with two brokers of ours, the second one behind a proxy."""
        case = Case(Conversation(api, function.__name__, (version,), False, False, function), version)
        with Tampering(self.right.address, change) as proxy:
            honest = side_of(self.right)
            changed = Side(honest.name, proxy.address, honest.fixed, honest.ports)
            return judge(case, play(case, side_of(self.left)), play(case, changed), accepted)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with PykafkaBroker(OUR_SETTINGS) as left, PykafkaBroker(OUR_SETTINGS) as right:
        yield World(left, right)


def two_topics(talk: Talk) -> None:
    names = [talk.topic("a", partitions=2).name, talk.topic("b").name, talk.name("missing")]
    talk.ask(
        MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        ),
        E.UNKNOWN_TOPIC_OR_PARTITION,
    )


def changing(response: type, change: Callable[[Any], Any]) -> Change:
    """A change of the answers of one type; the others pass."""

    def changed(_api_key: int, _version: int, message: Any) -> Any:
        return change(message) if isinstance(message, response) else message

    return changed


def setting(place: Callable[[Any], Any], name: str, value: Any) -> Change:
    def change(message: Any) -> Any:
        setattr(place(message), name, value)
        return message

    return changing(MetadataResponse, change)


def an_unknown_tag(api_key: int, version: int, message: Any) -> Any:
    if not isinstance(message, MetadataResponse):
        return message
    return encode(message, version)[:-1] + bytes([1, 99, 1, 7])


def without_its_last_partition(message: Any) -> Any:
    message.topics[0].partitions.pop()
    return message


def with_a_topic_more(message: Any) -> Any:
    message.topics.append(MetadataResponseTopic(error_code=0, name="more", partitions=[]))
    return message


def in_reverse(message: Any) -> Any:
    message.topics.reverse()
    return message


PLANTED: dict[str, tuple[Change, str]] = {
    "an error code": (
        setting(lambda message: message.topics[0], "error_code", 5),
        '1 Metadata v12.topics.0.error_code: Apache "0 NONE", ours "5 LEADER_NOT_AVAILABLE"',
    ),
    "a number": (
        setting(lambda message: message.topics[0].partitions[0], "leader_epoch", 7),
        "1 Metadata v12.topics.0.partitions.0.leader_epoch: Apache 0, ours 7",
    ),
    "a boolean": (
        setting(lambda message: message.topics[0], "is_internal", True),
        "1 Metadata v12.topics.0.is_internal: Apache false, ours true",
    ),
    "null": (
        setting(lambda message: message.topics[0], "name", None),
        '1 Metadata v12.topics.0.name: Apache "a-',
    ),
    "another id than the topic's": (
        setting(lambda message: message.topics[0], "topic_id", b"another topic id"),
        '1 Metadata v12.topics.0.topic_id: Apache "<topic id 1>", ours "<topic id 3>"',
    ),
    "no id": (
        setting(lambda message: message.topics[0], "topic_id", bytes(16)),
        '1 Metadata v12.topics.0.topic_id: Apache "<topic id 1>", ours "0x0000',
    ),
    "another port": (
        setting(lambda message: message.brokers[0], "port", 9),
        '1 Metadata v12.brokers.0.port: Apache "<port>", ours 9',
    ),
    "a missing element": (
        changing(MetadataResponse, without_its_last_partition),
        "1 Metadata v12.topics.0.partitions.1: Apache {",
    ),
    "an element more": (
        changing(MetadataResponse, with_a_topic_more),
        "1 Metadata v12.topics.3: Apache (missing), ours {",
    ),
    "another order": (changing(MetadataResponse, in_reverse), "1 Metadata v12.topics.order: Apache ["),
    "an unknown tagged field": (
        an_unknown_tag,
        '1 Metadata v12.(encoding): Apache (missing), ours "not as our encoder writes it"',
    ),
    "a closed connection": (
        changing(MetadataResponse, lambda message: None),
        "1 Metadata v12: Apache {",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_difference_is_reported_with_its_place(world: World, what: str) -> None:
    change, reported = PLANTED[what]
    result = world.compare("metadata", 12, two_topics, change)
    assert result.verdict is Verdict.DIFFERENT
    assert str(result.differences[0]).startswith(reported)


def test_nothing_planted_nothing_found(world: World) -> None:
    result = world.compare("metadata", 12, two_topics, lambda api_key, version, message: message)
    assert (result.verdict, result.differences) == (Verdict.EQUAL, ())


def test_a_group_that_another_conversation_has_left_behind_is_not_compared(world: World) -> None:
    def leaving(talk: Talk) -> None:
        a_member(talk, a_group(talk, "left"))

    def listing(talk: Talk) -> None:
        a_member(talk, a_group(talk, "own"))
        talk.ask(ListGroupsRequest())

    def without_any(message: ListGroupsResponse) -> ListGroupsResponse:
        message.groups = []
        return message

    left = Case(Conversation("list_groups", "leaving", (5,), False, False, leaving), 5)
    assert play(left, side_of(world.left)).broke_off is None

    unchanged = world.compare("list_groups", 5, listing, lambda api_key, version, message: message)
    lost = world.compare("list_groups", 4, listing, changing(ListGroupsResponse, without_any))

    assert unchanged.verdict is Verdict.EQUAL
    assert [difference.path for difference in lost.differences] == ["1 ListGroups v4.groups.own-07bba279-v4"]


def test_the_words_of_an_error_are_a_class_of_their_own(world: World) -> None:
    def an_existing_topic(talk: Talk) -> None:
        topic = CreatableTopic(
            name=talk.topic().name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        talk.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), E.TOPIC_ALREADY_EXISTS)

    def in_other_words(message: Any) -> Any:
        message.topics[0].error_message = message.topics[0].error_message and "No."
        return message

    result = world.compare(
        "create_topics", 7, an_existing_topic, changing(CreateTopicsResponse, in_other_words)
    )
    assert result.verdict is Verdict.WORDS
    assert [difference.ours for difference in result.differences] == ['"No."']


def test_records_are_compared_one_by_one(world: World) -> None:
    def what_was_written(talk: Talk) -> None:
        topic = talk.topic()
        talk.produce(topic, b"first", b"second")
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10_000)
        topics = [FetchTopic(topic=topic.name, topic_id=topic.id, partitions=[asked])]
        talk.ask(FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, topics=topics))

    def with_another_value(message: Any) -> Any:
        partition = message.responses[0].partitions[0]
        partition.records = bytes(partition.records).replace(b"second", b"Second")
        return message

    result = world.compare("fetch", 16, what_was_written, changing(FetchResponse, with_another_value))
    assert result.verdict is Verdict.DIFFERENT
    assert '"1 Fetch v16.responses.0.partitions.0.records.0.records"' in f'"{result.differences[0].path}"'


def test_a_conversation_that_does_not_see_what_it_expects_is_broken(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def an_expectation_that_is_wrong(talk: Talk) -> None:
        talk.ask(MetadataRequest(topics=[]), E.UNKNOWN_TOPIC_OR_PARTITION)

    def an_end_that_does_not_come(talk: Talk) -> None:
        talk.ask(MetadataRequest(topics=[]), CLOSED)

    def what_never_comes(talk: Talk) -> None:
        talk.ask(MetadataRequest(topics=[]), until=lambda answer: False)

    def nothing_at_all(talk: Talk) -> None:
        talk.topic()

    def passed_on(api_key: int, version: int, message: Any) -> Any:
        return message

    monkeypatch.setattr("interop.conformance.talk.SET_UP_TIMEOUT_S", 0.5)
    for function in (
        an_expectation_that_is_wrong,
        an_end_that_does_not_come,
        what_never_comes,
        nothing_at_all,
    ):
        assert world.compare("metadata", 12, function, passed_on).verdict is Verdict.BROKEN


def test_an_accepted_difference_is_accepted_where_it_is_meant_and_goes_stale(world: World) -> None:
    change, _ = PLANTED["an error code"]
    meant = Accepted("meant", "metadata/two*", {"*.topics.*.error_code": '"5 *"'}, "a reason")
    elsewhere = Accepted("elsewhere", "metadata/*", {"*.topics.*.leader_id": "*"}, "a reason")

    accepted = world.compare("metadata", 12, two_topics, change, [meant, elsewhere])
    assert (accepted.verdict, accepted.accepted) == (Verdict.ACCEPTED, ("meant",))
    assert stale([accepted], [accepted.case], [meant, elsewhere]) == [elsewhere]
    other = Case(accepted.case.conversation, 11)
    assert stale([accepted], [accepted.case, other], [meant, elsewhere]) == []  # it may still occur at v11

    otherwise = Accepted("otherwise", "metadata/two*", {"*.topics.*.error_code": '"6 *"'}, "a reason")
    for entry in (elsewhere, otherwise):
        assert world.compare("metadata", 12, two_topics, change, [entry]).verdict is Verdict.DIFFERENT


def test_epochs_keep_their_order_whatever_the_steps_between_them() -> None:
    def named(*epochs: int) -> list[object]:
        names = Names({})
        return [an_epoch(names, "epoch", epoch) for epoch in epochs]

    assert named(0, 3, 5, 3, -1) == named(0, 4, 9, 4, -1) == [0, "<epoch 1>", "<epoch 2>", "<epoch 1>", -1]
    assert named(3, 9, 5, 1) == [
        "<epoch 1>",
        "<epoch 2>",
        "<epoch 3 before <epoch 2>>",
        "<epoch 4 before <epoch 1>>",
    ]


def test_producer_id_0_beside_an_error_is_no_producers() -> None:
    """With one broker a conversation has the first producer id of all, with the other a later one."""

    def states(first: int) -> Tree:
        mine, forgotten = blank(TransactionState), blank(TransactionState)
        mine.producer_id, forgotten.error_code = first, E.TRANSACTIONAL_ID_NOT_FOUND
        answer = DescribeTransactionsResponse(transaction_states=[mine, forgotten])
        return tree_of(answer, 0, Names({}))

    assert states(0) == states(4)
    assert states(0)["transaction_states"][1]["producer_id"] == 0


def test_an_array_compared_by_key_still_has_an_order() -> None:
    def listing(*keys: int) -> Tree:
        apis = [ApiVersion(api_key=key, min_version=0, max_version=1) for key in keys]
        return tree_of(ApiVersionsResponse(error_code=0, api_keys=apis), 0, Names({}))

    def found(apache: Tree, ours: Tree) -> list[str]:
        return [difference.path for difference in differences(apache, ours, "1")]

    assert found(listing(0, 1, 2), listing(0, 2)) == ["1.api_keys.1"]
    assert found(listing(0, 1, 2), listing(2, 0)) == ["1.api_keys.order", "1.api_keys.1"]
    assert found(listing(0, 1), listing(0, 1, 1)) != []


def test_declared_conversations_notice_when_they_are_lied_to(world: World) -> None:
    usual = [case for case in cases() if not case.conversation.alone and not case.conversation.settings]
    chosen = sample(usual, seed=1, size=SABOTAGED)
    assert unnoticed(chosen, side_of(world.left), side_of(world.right)) == []


def test_versions_are_chosen_from_those_that_are_served() -> None:
    served = (2, 3, 4, 5)
    assert [choose(served, text) for text in ("0+", "3-4", "5", "latest", "ends")] == [
        served, (3, 4), (5,), (5,), (2, 5)
    ]  # fmt: skip


def test_a_seed_always_chooses_the_same_conversations() -> None:
    declared = cases()
    assert sample(declared, 7, 5) == sample(declared, 7, 5) != sample(declared, 8, 5)
