"""The checks in their order; each uses the findings of those before it, and may be left out without them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from pykafka_broker.client.core.addresses import Address, parse_addresses
from pykafka_broker.client.quorum import QUORUM_WITHIN_S, LostQuorum
from pykafka_broker.doctor import brokers, quorum, reach
from pykafka_broker.doctor.findings import Finding, Level, skipped
from pykafka_broker.doctor.refusals import Refusal, guarded
from pykafka_broker.doctor.starting import starting_at
from pykafka_broker.spark.doctor.checkpoint import about_checkpoint
from pykafka_broker.spark.doctor.machine import about_this_machine
from pykafka_broker.spark.doctor.question import Question
from pykafka_broker.spark.doctor.session import in_a_session, through
from pykafka_broker.spark.doctor.source_options import about_source_options
from pykafka_broker.spark.doctor.topics import about_topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def examine(question: Question, session: SparkSession | None = None) -> Iterator[Finding]:
    """All findings, as they are made; with a session, it is examined instead of a new one."""
    has_problem = False
    addresses: list[Address] = []
    # A session that runs has found its Java and its jars.
    for finding in about_this_machine(question.jars) if session is None else ():
        has_problem = has_problem or finding.level is Level.PROBLEM
        yield finding
    yield from about_source_options(question.options)
    for found in _about_cluster(question):
        if isinstance(found, Finding):
            yield found
        else:
            addresses = found
    if session is not None:
        yield from through(session, question, addresses)
    elif question.master is None:
        return
    elif has_problem:
        yield skipped("session", "Session, executors and a read: Java or the jars are wrong.")
    else:
        yield from in_a_session(question, question.master, addresses)


def _about_cluster(question: Question) -> Iterator[Finding | list[Address]]:
    """Brokers, topics and checkpoint; and the addresses that brokers advertise."""
    given = parse_addresses(question.bootstrap_servers)
    if not question.speaks_plain:
        yield skipped(
            "connection", "Brokers, topics and checkpoint: asked through Spark only, in TLS or SASL."
        )
        yield given
        return
    answers = reach.all_at_once(lambda address: reach.probe(address, question.timeout_s), given)
    asked = list(zip(given, answers, strict=True))
    reached = next((address for address, answer in asked if answer.kind is reach.Kind.KAFKA), None)
    if reached is None:
        for address, answer in asked:
            yield reach.about_answer(address, answer, starting=starting_at(address, answer))
        yield skipped("brokers", "Brokers, topics and checkpoint: no broker answers.")
        return
    with question.connect(question.bootstrap_servers, question.timeout_s) as client:
        known = brokers.known_at(client) if len(asked) > 1 else {}
        for address, answer in asked:
            waiting = starting_at(address, answer)
            yield brokers.judge_address(address, answer, reached, known, starting=waiting)
        try:
            cluster, advertised = brokers.look(client, question.connect)
        except Refusal as error:
            refusal = reach.about_listener(reached, [reach.METADATA], error)
            assert refusal is not None
            yield refusal
            return
        yield from _about_quorum(question, reached, brokers.answering(cluster, advertised))
        yield from brokers.judge(reached, cluster, advertised)
        yield [Address(*address) for address in cluster.brokers.values()]
        starting = question.options.get("startingOffsets")
        yield from guarded("topics", about_topics(client, question.topics, starting))
        if question.checkpoint is not None:
            found = about_checkpoint(client, question.checkpoint, question.topics)
            yield from guarded("checkpoint", found)


def _about_quorum(
    question: Question, reached: reach.Address, answering: Collection[int]
) -> Iterator[Finding]:
    """The finding about a quorum without a leader, as the broker that was reached tells it."""
    with question.connect(reach.shown(reached), min(question.timeout_s, QUORUM_WITHIN_S)) as client:
        found = quorum.look(client)
        if isinstance(found, LostQuorum):
            source = quorum.Source(reach.shown(reached), client.connection().metadata_offset)
            yield quorum.judge(found, source, quorum.silent_voters(found, answering))
