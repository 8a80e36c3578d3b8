"""Clusters to decide on, and `decide`, which checks that each step's state is its records replayed."""

from __future__ import annotations

from typing import Any

from pykafka_broker.cluster.features import NODE_FEATURES, bootstrap_records
from pykafka_broker.cluster.image import ClusterImage, RegisteredEndpoint, replay
from pykafka_broker.cluster.records import decode_record, encode_record
from pykafka_broker.controller.core.events import (
    AlterPartition,
    Asked,
    BrokerHeartbeat,
    Event,
    IsrChange,
    IsrMember,
    Moment,
    RegisterBroker,
)
from pykafka_broker.controller.core.state import AnyConfig, ControllerRules, ControllerState
from pykafka_broker.controller.core.transitions import transition
from pykafka_broker.controller.decision_lines import Decided, lines
from pykafka_broker.machine.step import Reply, Step
from pykafka_broker.protocol.errors import ErrorCode

CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NOW_MS = 1_700_000_000_000


def uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def directory(broker_id: int) -> bytes:
    return uuid(1_000 + broker_id)


def an_empty_cluster(**rules: Any) -> ControllerState:
    """A log with its first records and no broker."""
    image = replay(ClusterImage(CLUSTER_ID), bootstrap_records(), offset=0, epoch=1)
    return ControllerState(image, ControllerRules(rules.pop("node_id", 1), CLUSTER_ID, **rules))


def a_cluster(*broker_ids: int, racks: dict[int, str] | None = None, **rules: Any) -> ControllerState:
    """Brokers that are registered and unfenced."""
    state = an_empty_cluster(**rules)
    for broker_id in broker_ids:
        state = unfence(register(state, broker_id, rack=(racks or {}).get(broker_id)), broker_id)
    return state


def registration(broker_id: int, **fields: Any) -> RegisterBroker:
    event = RegisterBroker(
        broker_id,
        CLUSTER_ID,
        uuid(2_000 + broker_id),
        {"PLAINTEXT": RegisteredEndpoint(f"broker{broker_id}", 9092)},
        NODE_FEATURES,
        (directory(broker_id),),
    )
    return event._replace(**fields)


def heartbeat(state: ControllerState, broker_id: int, **fields: Any) -> BrokerHeartbeat:
    """From a broker that has applied everything."""
    epoch = state.image.brokers[broker_id].epoch
    return BrokerHeartbeat(broker_id, epoch, state.image.offset)._replace(**fields)


def register(state: ControllerState, broker_id: int, now_ms: int = NOW_MS, **fields: Any) -> ControllerState:
    return decide(state, registration(broker_id, **fields), now_ms)[0]


def unfence(state: ControllerState, broker_id: int) -> ControllerState:
    return decide(state, heartbeat(state, broker_id))[0]


def fence(state: ControllerState, broker_id: int) -> ControllerState:
    return decide(state, heartbeat(state, broker_id, want_fence=True))[0]


def isr_change(state: ControllerState, topic: str, partition: int, **fields: Any) -> IsrChange:
    """From a leader that knows everything; `isr` are brokers in their present epochs."""
    known = state.image.topics[topic].partitions[partition]
    isr = fields.pop("isr", known.isr)
    members = tuple(
        IsrMember(b, state.image.brokers[b].epoch if b in state.image.brokers else -1) for b in isr
    )
    change = IsrChange(
        state.image.topics[topic].topic_id, partition, known.leader_epoch, known.partition_epoch, members
    )
    return change._replace(**fields)


def alter_partition(state: ControllerState, topic: str, partition: int, **fields: Any) -> ControllerState:
    """The leader has other replicas in sync."""
    leader = state.image.topics[topic].partitions[partition].leader
    change = isr_change(state, topic, partition, **fields)
    event = AlterPartition(leader, state.image.brokers[leader].epoch, (change,))
    state, _, [result] = decide(state, event)
    assert result.error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED), result
    return state


def stepped(
    state: ControllerState, event: Event, now_ms: int = NOW_MS, seed: int = 0, token: int | None = None
) -> Step[ControllerState]:
    """The step of an event, which is answered where there is a token."""
    return transition(state, Asked(event, Moment(now_ms, now_ms, seed), token))


def decide(
    state: ControllerState, event: Event, now_ms: int = NOW_MS, seed: int = 0
) -> tuple[ControllerState, tuple[Any, ...], Any]:
    """The next state, the records and the answer."""
    step = stepped(state, event, now_ms, seed, token=1)
    records = tuple(decode_record(encode_record(record, 30)) for record in step.records)
    assert records == step.records, "the log would say something else"
    replayed = replay(state.image, records, offset=state.next_offset, epoch=state.image.epoch)
    assert step.state.image == (replayed if records else state.image)
    list(lines(Decided(event, records, state.image, step.state.image), AnyConfig().is_secret))  # can be told
    answers = [effect.result for effect in step.effects if isinstance(effect, Reply)]
    return step.state, step.records, answers[0] if answers else None
