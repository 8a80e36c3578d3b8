"""The talk of a conversation: one connection to one broker, fresh names, and the steps of set-up.

`ask` sends a request and waits for the answer, which is written down to be compared; it also says which error
codes have to stand in it, so that a conversation is about something even if two brokers agree. `do` is for
set-up: it must succeed and is not compared. `send` does not wait; its `Pending` is answered later, which is
how conversations of several members or of a waiting fetch are told. `another()` opens a second connection.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from socket import MSG_PEEK
from typing import Any, Final

from interop.conformance.normalise import (
    Names,
    Tree,
    error_codes,
    error_name,
    is_unordered,
    learn,
    tree_of,
)
from interop.conformance.sabotage import spoil_error, spoil_number
from interop.conformance.versions import latest_version
from interop.conformance.wire import (
    ANSWER_TIMEOUT_S,
    Closed,
    NoAnswer,
    Wire,
    read_answer,
)
from pykafka_broker.client.blocking import Tls
from pykafka_broker.client.core.frames import correlation_id_of
from pykafka_broker.protocol.errors import ErrorCode
from pykafka_broker.protocol.fields import ZERO_UUID
from pykafka_broker.protocol.java_hash import string_hash_abs
from pykafka_broker.protocol.messages import API_NAMES, module_name
from pykafka_broker.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from pykafka_broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from pykafka_broker.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
)
from pykafka_broker.protocol.messages.list_groups import ListGroupsResponse
from pykafka_broker.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from pykafka_broker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykafka_broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from pykafka_broker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from pykafka_broker.protocol.records.batch import BatchFields, build_batch
from pykafka_broker.sasl.plain import plain_token

E = ErrorCode

#: The broker is still creating, electing or loading something: set-up asks again.
NOT_YET: Final = frozenset(
    {
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.LEADER_NOT_AVAILABLE,
        E.NOT_LEADER_OR_FOLLOWER,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
    }
)
#: What tells the names of one conversation from those of others.
MARK = re.compile(r"\b[0-9a-f]{8}-v\d+")
SET_UP_TIMEOUT_S = 60.0
PAUSE_S = 0.01


@dataclass(frozen=True)
class _Expectation:
    name: str


#: The broker closes the connection instead of answering.
CLOSED = _Expectation("the connection is closed")
#: Which errors stand in the answer is left to the comparison.
ANY = _Expectation("any errors")

Expected = ErrorCode | _Expectation


class SetUpError(Exception):
    """A step that is not under test was refused."""


class BrokenOffError(Exception):
    """The connection ended where the conversation wanted to go on."""


@dataclass
class Transcript:
    """The answers of one broker in one conversation."""

    #: Of each compared answer: "Metadata v12" and the answer, in which nothing volatile is left.
    answers: list[tuple[str, Tree]] = field(default_factory=list)
    #: Answers that did not hold the errors that the conversation expects.
    unexpected: list[str] = field(default_factory=list)
    #: Why the conversation ended early.
    broke_off: str | None = None
    #: Whether an error code was spoilt that the conversation has an opinion about.
    error_spoilt: bool = False


@dataclass(frozen=True)
class Home:
    """The node of a cluster that conversations are held with: it leads their partitions and coordinates their
    groups, transactions and share partitions.
    """

    address: str
    #: Of the replicas of their topics the first leads, while it is there.
    replicas: tuple[int, ...]
    #: The partition of __consumer_offsets and __transaction_state that all their ids belong to, and how many
    #: partitions these topics have.
    partition: int
    partitions: int
    #: The partitions of __share_group_state that it leads, and how many that topic has.
    share_partitions: range
    all_share_partitions: int

    def named(self, name: str) -> str:
        """`name`, or one like it that belongs to this node."""
        return next(each for each in alike(name) if self.coordinates(each))

    def coordinates(self, name: str) -> bool:
        """Whether a group or a transactional id belongs to this node."""
        return string_hash_abs(name) % self.partitions == self.partition

    def coordinates_share(self, key: str) -> bool:
        """Whether a share partition does, of which `key` is what FindCoordinator asks for."""
        return string_hash_abs(key) % self.all_share_partitions in self.share_partitions


def alike(name: str) -> Iterator[str]:
    """`name` and others like it, without an end."""
    return chain((name,), (f"{name}-{number}" for number in count(1)))


@dataclass
class Side:
    """One of the two brokers, or of the two clusters."""

    name: str
    address: str
    #: Its own address and paths, and what stands for them.
    fixed: dict[str, str]
    ports: frozenset[int]
    #: Of its listener of controllers, if it has one.
    controller_address: str | None = None
    #: Spoil every compared answer, to see the conversation fail (`sabotage.py`).
    sabotaged: bool = False
    #: Makes the names of a conversation that is held again other ones: what it left behind may differ.
    salt: str = ""
    #: In a cluster: conversations are spread over them.
    homes: tuple[Home, ...] = ()
    #: In a cluster: finds the controller that leads by now, and the address of its listener.
    active_controller: Callable[[], tuple[int, str]] | None = None

    @property
    def nodes(self) -> frozenset[int]:
        """The ids of a cluster's nodes."""
        return frozenset(node for home in self.homes for node in home.replicas)

    @property
    def active_controller_id(self) -> Callable[[], int] | None:
        find = self.active_controller
        return (lambda: find()[0]) if find else None

    def home_of(self, subject: Subject) -> Home | None:
        """Where this conversation is held in a cluster."""
        if not self.homes:
            return None
        return self.homes[zlib.crc32(f"{subject.id} v{subject.version}".encode()) % len(self.homes)]


@dataclass(frozen=True)
class Subject:
    """The subject of a conversation: an API, or a file that is about none, at one version."""

    api: str
    #: Of the conversation.
    id: str
    version: int


@dataclass(frozen=True)
class Topic:
    name: str
    id: bytes


class Talk:
    """One connection of a conversation."""

    def __init__(
        self,
        subject: Subject,
        side: Side,
        *,
        transcript: Transcript | None = None,
        names: Names | None = None,
        client_id: str | None = "conformance",
        address: str | None = None,
        tls: Tls | None = None,
    ) -> None:
        self.subject = subject
        self.side = side
        self.transcript = transcript if transcript is not None else Transcript()
        self.names = names or Names(
            side.fixed, side.ports, side.nodes, active_controller=side.active_controller_id
        )
        self.home = side.home_of(subject)
        self._address = self.home.address if self.home else side.address
        self.wire = Wire.to(address or self._address, client_id, tls)
        self.is_with_controllers = False
        self.opened: list[Talk] = []
        self.created: list[str] = []
        self._login: tuple[str, str] | None = None

    # ---- what it is about ----

    @property
    def version(self) -> int:
        """The version under test."""
        return self.subject.version

    def name(self, label: str = "topic") -> str:
        """A name of this conversation's own: the same with both brokers, another at each version."""
        return self.at_home(f"{label}-{self._mark}")

    def is_of_another(self, name: str) -> bool:
        """Whether it is a name of another conversation."""
        marks = MARK.findall(name)
        return bool(marks) and self._mark not in marks

    @property
    def _mark(self) -> str:
        """What all names of this conversation have in them."""
        crc = zlib.crc32((self.subject.id + self.side.salt).encode())
        return f"{crc:08x}-v{self.version}"

    def at_home(self, name: str) -> str:
        """`name`, or in a cluster one like it that belongs to the home of this conversation."""
        return self.home.named(name) if self.home else name

    @property
    def coordinators_partition(self) -> int:
        """The partition of __consumer_offsets and __transaction_state that its names belong to."""
        return self.home.partition if self.home else 0

    # ---- asking ----

    def ask(
        self,
        request: Any,
        *expected: Expected,
        version: int | None = None,
        until: Callable[[Any], bool] | None = None,
        in_any_order: dict[str, str] | None = None,
    ) -> Any:
        """Send `request` and compare the answer, in which exactly the errors `expected` stand, in that order.

        The version is the one under test if the request is of the API under test, the newest otherwise. With
        `until` the request is repeated until that holds of the answer, which alone is compared: for what a
        broker does a moment after it has answered. `in_any_order` names arrays in which Apache has no order
        in this case, each with the field ("name", or "name/type") by which its elements are told apart.
        """
        version = self._version_of(request, version)
        if until is not None:
            return self._ask_until(request, version, expected, until, in_any_order or {})
        return self.send(request, version=version).answer(*expected, in_any_order=in_any_order)

    def send(self, request: Any, *, version: int | None = None) -> Pending:
        """Send `request` without waiting for the answer, which there need not be."""
        version = self._version_of(request, version)
        learn(request, version, self.names)
        return Pending(self, request.api_key, version, self.wire.send(request, version))

    def do(self, request: Any, *, version: int | None = None) -> Any:
        """A step of set-up: must succeed, is repeated while the broker is not ready, is not compared."""
        version = latest_version(request.api_key) if version is None else version
        learn(request, version, self.names)
        deadline = time.monotonic() + SET_UP_TIMEOUT_S
        while True:
            answer = Pending(self, request.api_key, version, self.wire.send(request, version)).receive()
            errors = error_codes(answer, version)
            if not errors:
                learn(answer, version, self.names)
                return answer
            if not NOT_YET.issuperset(errors) or time.monotonic() > deadline:
                raise SetUpError(f"{answer} to {request}")
            time.sleep(PAUSE_S)

    def send_bytes(self, data: bytes) -> None:
        """Send bytes that need not be a request."""
        self.wire.send_bytes(data)

    def send_frame(self, api_key: int, version: int, frame: bytes) -> Pending:
        """A frame that our encoder would not make; its answer is read as one of this API and version."""
        self.wire.send_frame(frame)
        return Pending(self, api_key, version, None)

    def next_answer(self, api_key: int, version: int) -> Pending:
        """The answer to what `send_bytes` has sent."""
        return Pending(self, api_key, version, None)

    def is_closed(self) -> None:
        """Compare whether the broker closes this connection without a word."""
        try:
            said = f"0x{self.wire.receive().hex()}"
        except Closed:
            said = "closed"
        except NoAnswer:
            said = "open and silent"
        self.note("the connection", said)
        if said != "closed":
            self.transcript.unexpected.append(f"the connection is {said}")

    def another(self, client_id: str | None = "conformance") -> Talk:
        """A second connection of the same conversation."""
        other = Talk(
            self.subject, self.side, transcript=self.transcript, names=self.names, client_id=client_id
        )
        self.opened.append(other)
        return other

    def log_in(self, user: str, password: str | None = None) -> None:
        """Authenticate with SASL/PLAIN, by default with a password that is the name.

        The user of the first connection tidies up after the conversation.
        """
        self._login = user, user if password is None else password
        self.do(SaslHandshakeRequest(mechanism="PLAIN"))
        self.do(SaslAuthenticateRequest(auth_bytes=plain_token(*self._login)))

    def to(self, address: str, tls: Tls | None = None) -> Talk:
        """A connection of the same conversation, and of the same user, to another node."""
        other = Talk(
            self.subject,
            self.side,
            transcript=self.transcript,
            names=self.names,
            address=address,
            tls=tls,
        )
        self.opened.append(other)
        if self._login:
            other.log_in(*self._login)
        return other

    def controllers(self, tls: Tls | None = None) -> Talk:
        """A connection of the same conversation, and of the same user, to the listener of controllers."""
        find = self.side.active_controller
        address = find()[1] if find else self.side.controller_address
        if address is None:
            raise SetUpError(f"{self.side.name} has no listener of controllers")
        other = self.to(address, tls)
        other.is_with_controllers = True
        return other

    def quorum_epoch(self) -> int:
        """The epoch of the quorum as it is now: controllers of Apache Kafka resign in some conversations."""
        partition = DescribeQuorumRequestPartitionData(partition_index=0)
        topic = DescribeQuorumRequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
        described = self.do(DescribeQuorumRequest(topics=[topic])).topics[0].partitions[0]
        epoch: int = described.leader_epoch
        return epoch

    def note(self, title: str, said: Tree) -> None:
        """Write down what was said, or how nothing was."""
        if self.side.sabotaged and isinstance(said, str):
            said = f"not {said}"
        self.transcript.answers.append((title, said))

    def close(self) -> None:
        for other in self.opened:
            other.close()
        self.wire.close()

    def _version_of(self, request: Any, version: int | None) -> int:
        if version is not None:
            return version
        about = module_name(request.api_key) == self.subject.api
        return self.version if about else latest_version(request.api_key)

    def _ask_until(
        self,
        request: Any,
        version: int,
        expected: Sequence[Expected],
        until: Callable[[Any], bool],
        in_any_order: dict[str, str],
    ) -> Any:
        learn(request, version, self.names)
        deadline = time.monotonic() + SET_UP_TIMEOUT_S
        while True:
            pending = Pending(self, request.api_key, version, self.wire.send(request, version))
            answer = pending.receive()
            so = until(answer)
            if so or time.monotonic() > deadline:
                pending.compare(answer, expected, in_any_order)
                if not so:
                    self.transcript.unexpected.append(f"{pending.title}: what was waited for does not come")
                return answer
            time.sleep(PAUSE_S)

    # ---- set-up ----

    def topic(
        self,
        label: str = "topic",
        *,
        partitions: int = 1,
        configs: dict[str, str] | None = None,
        name: str | None = None,
    ) -> Topic:
        """A new topic whose partitions all have leaders; it is deleted when the conversation ends."""
        name = name or self.name(label)
        # Each partition is led at home.
        replicas = list(self.home.replicas) if self.home else []
        placed = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=replicas)
            for index in range(partitions if replicas else 0)
        ]
        new = CreatableTopic(
            name=name,
            num_partitions=-1 if placed else partitions,
            replication_factor=-1 if placed else 1,
            assignments=placed,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
        )
        created = self.do(CreateTopicsRequest(topics=[new], timeout_ms=10_000, validate_only=False))
        self.created.append(name)
        self.is_led(name, partitions)
        return Topic(name, created.topics[0].topic_id)

    def is_led(self, name: str, partitions: int = 1) -> None:
        """Wait until every partition of a topic can be used."""
        asked = [ListOffsetsPartition(partition_index=index, timestamp=-2) for index in range(partitions)]
        self.do(ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=asked)]))

    def produce(
        self,
        topic: Topic,
        *values: bytes | None,
        partition: int = 0,
        key: bytes | None = None,
        timestamp_ms: int = 1_700_000_000_000,
        **batch: Any,
    ) -> int:
        """Append one batch of these values; its base offset. `batch` are `BatchFields`."""
        records = [(timestamp_ms + index, key, value, ()) for index, value in enumerate(values)]
        return self.append(topic, build_batch(records, BatchFields(**batch)), partition)

    def append(self, topic: Topic, batch: bytes, partition: int = 0) -> int:
        """Append a batch as it is; its base offset."""
        data = [PartitionProduceData(index=partition, records=batch)]
        answer = self.do(
            ProduceRequest(
                acks=-1,
                timeout_ms=10_000,
                topic_data=[TopicProduceData(name=topic.name, topic_id=topic.id, partition_data=data)],
            )
        )
        base_offset: int = answer.responses[0].partition_responses[0].base_offset
        return base_offset

    def tidy(self) -> None:
        """Delete the topics of the conversation, as far as they are still there."""
        names = [name for each in (self, *self.opened) for name in each.created]
        if names:
            other = self.another()
            if self._login:
                other.log_in(*self._login)
            topics = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names]
            other.wire.send(DeleteTopicsRequest(topics=topics, topic_names=[], timeout_ms=10_000), 6)
            other.wire.receive()


@dataclass
class Pending:
    """A request that was sent and is not answered yet. Answers come in the order of the requests."""

    talk: Talk
    api_key: int
    version: int
    correlation_id: int | None

    @property
    def title(self) -> str:
        return f"{API_NAMES[self.api_key]} v{self.version}"

    def answer(self, *expected: Expected, in_any_order: dict[str, str] | None = None) -> Any:
        """Wait for the answer and compare it, as `Talk.ask` does. None if the connection was closed."""
        try:
            message = self.receive()
        except Closed:
            return self._ended("connection closed", CLOSED in expected)
        except NoAnswer:
            return self._ended(f"no answer within {ANSWER_TIMEOUT_S:g} s", False)
        self.compare(message, expected, in_any_order or {})
        return message

    def receive(self) -> Any:
        """The answer, not compared."""
        frame = self.talk.wire.receive()
        if self.correlation_id is not None and correlation_id_of(frame) != self.correlation_id:
            raise BrokenOffError(f"{self.title} was answered out of turn")
        answer = read_answer(self.api_key, self.version, frame)
        self._as_declared = answer.as_declared
        return answer.message

    def compare(self, message: Any, expected: Sequence[Expected], in_any_order: dict[str, str]) -> None:
        if isinstance(message, ListGroupsResponse):
            # Apache Kafka cannot remove a group with a subscription that it cannot read.
            message.groups = [each for each in message.groups if not self.talk.is_of_another(each.group_id)]
        spoilt = self.talk.side.sabotaged and self._spoil(message, expected)
        tree = tree_of(
            message,
            self.version,
            self.talk.names,
            in_any_order,
            is_of_the_quorum=self.talk.is_with_controllers or isinstance(message, DescribeQuorumResponse),
        )
        if not self._as_declared:
            tree["(encoding)"] = "not as our encoder writes it"
        if spoilt:
            tree["(spoilt)"] = True
        self.talk.note(self.title, tree)
        errors, wanted_errors = error_codes(message, self.version), list(expected)
        if in_any_order or is_unordered(type(message)):
            errors.sort()
            wanted_errors.sort(key=lambda each: -2 if isinstance(each, _Expectation) else int(each))
        if ANY not in expected and errors != wanted_errors:
            found = ", ".join(error_name(code) for code in errors) or "no error"
            wanted = ", ".join(
                str(each) if isinstance(each, _Expectation) else error_name(each) for each in expected
            )
            self.talk.transcript.unexpected.append(
                f"{len(self.talk.transcript.answers)} {self.title}: {found} instead of {wanted or 'no error'}"
            )

    def _spoil(self, message: Any, expected: Sequence[Expected]) -> bool:
        """Spoil the answer; True if there is nothing in it to spoil."""
        if spoil_error(message, self.version):
            self.talk.transcript.error_spoilt |= ANY not in expected
            return False
        return not spoil_number(message, self.version)

    def is_waiting(self, for_s: float = 0.3) -> None:
        """Compare that the broker has said nothing for a while: the request is parked."""
        self.talk.wire.socket.settimeout(for_s)
        try:
            said = "answered" if self.talk.wire.socket.recv(1, MSG_PEEK) else "closed"
        except TimeoutError:
            said = "waiting"
        self.talk.note(self.title, said)
        if said != "waiting":
            self.talk.transcript.unexpected.append(f"{self.title} is not waiting but {said}")

    def _ended(self, how: str, expected: bool) -> None:
        self.talk.note(self.title, how)
        if not expected:
            self.talk.transcript.unexpected.append(f"{self.title}: {how}")
            raise BrokenOffError(f"{self.title}: {how}")
