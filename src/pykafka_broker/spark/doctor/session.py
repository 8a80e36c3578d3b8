"""The checks through a session of Spark: whether it starts, what its executors reach, whether it reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pykafka_broker.client.core.addresses import Address
from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.spark.doctor.faults import of_faults
from pykafka_broker.spark.doctor.question import Question
from pykafka_broker.spark.jvm_output import kept_output
from pykafka_broker.system.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka_broker.spark.executors import Reached


def in_a_session(question: Question, master: str, addresses: Sequence[Address]) -> Iterator[Finding]:
    """Start a session, and look through it; the output of its JVM is kept from the terminal."""
    from pykafka_broker.spark.session import kafka_session

    with kept_output() as printed:
        try:
            session = kafka_session(
                "pykafka-broker doctor",
                master=master,
                jars=question.jars,
                conf={"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"},
            )
        except Exception as error:
            yield does_not_start(str(error), printed())
            return
        try:
            yield ok("session", master, f"A session starts at {master}.")
            yield from through(session, question, addresses)
        finally:
            session.stop()


def does_not_start(error: str, printed: str) -> Finding:
    """The finding of a session that does not start, with the last output of its JVM."""
    telling = [line.strip() for line in printed.splitlines() if line.strip() and not line.startswith("\tat ")]
    marks = ("unresolved dependency", "not found", "Exception", "Error", "rror:", "refused")
    reasons = [line for line in telling if any(mark in line for mark in marks)]
    said = (reasons or telling or error.splitlines() or ["it says nothing"])[0]
    return problem(
        "session",
        "",
        f"No session starts: {said}",
        "Jars that Ivy does not get can be fetched beforehand:\n  pykafka-broker spark jars --dest DIR",
    )


def through(session: SparkSession, question: Question, addresses: Sequence[Address]) -> Iterator[Finding]:
    """Check the addresses that the executors reach, and whether Spark reads."""
    from pykafka_broker.spark.executors import reach
    from pykafka_broker.spark.reading import read_once

    timeout_s = question.timeout_s
    if addresses:
        reached = reach(session, addresses, timeout_s, speaks_plain=question.speaks_plain)
        yield from about_executors(reached)
    for name in question.topics:
        options = {
            "kafka.bootstrap.servers": question.bootstrap_servers,
            "subscribe": name,
            **question.options,
        }
        fault = read_once(session, options, timeout_s)
        if fault is None:
            yield ok("read", name, f"Spark reads topic {name!r}.")
        else:
            yield from of_faults("read", name, [fault])


def about_executors(reached: Sequence[Reached]) -> list[Finding]:
    """Whether the hosts of the executors reach the advertised addresses."""
    hosts = sorted({found.host for found in reached})
    wrong = [found for found in reached if found.reason]
    if not wrong:
        count = counted(len({found.address for found in reached}), "address", "addresses")
        return [ok("executors", "", f"Executors ({', '.join(hosts[:3])}) reach {count} of brokers.")]
    return [
        problem(
            "executors",
            str(found.address),
            f"Executors on {found.host} do not reach {found.address}: {found.reason.rstrip('.')}. "
            "Reads are planned, and then fail in their tasks.",
            "Have the broker advertise an address that the machines of the executors reach "
            "(advertised.listeners), or open the way to it.",
        )
        for found in wrong
    ]
