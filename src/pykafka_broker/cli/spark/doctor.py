"""`spark doctor`: why Spark does not read or write Kafka here, in sentences, each with its remedy.

The checks, in this order; a problem that an earlier one found may leave out a later one:

    java         the Java that Spark would start
    jars         the Spark that is installed, and the connector that fits it
    connection   who answers at the bootstrap address
    brokers      whether the advertised addresses lead to the brokers, from here
    topics       whether the topics are there, and may be read; whether offsets to begin with are in them
    checkpoint   whether a query can go on from its checkpoint
    session      whether a session starts
    executors    whether its executors reach the brokers
    read         whether Spark reads the topics, with the options that a program gives
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pykafka_broker.cli.cluster import Cluster, cluster_options
from pykafka_broker.cli.doctor import shown
from pykafka_broker.cli.doctor.findings import Finding, Level, argument, ok, problem, skipped, warning
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.spark.options import jars_option
from pykafka_broker.cli.spark.session_options import reader_options
from pykafka_broker.cli.wording import counted
from pykafka_broker.client.addresses import Address, parse_addresses
from pykafka_broker.spark.errors import Fault, SparkError
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafka_broker.client.blocking import Client
    from pykafka_broker.spark.executors import Reached
    from pykafka_broker.spark.installation import Installation

#: Jars that matter to the connector, wherever they lie.
KAFKA_JARS = (
    "spark-sql-kafka",
    "spark-token-provider-kafka",
    "spark-streaming-kafka",
    "kafka-clients",
    "commons-pool2",
)
SECURITY_PROTOCOL = "kafka.security.protocol"


class Question(NamedTuple):
    """The subjects of an examination."""

    cluster: Cluster
    topics: Sequence[str] = ()
    #: Options of the source, as a program gives them.
    options: Mapping[str, str] = {}
    jars: Path | None = None
    checkpoint: Path | None = None
    #: The master of the session to start; None: no session, and nothing that needs one.
    master: str | None = "local[2]"

    @property
    def speaks_plain(self) -> bool:
        """Whether the listener is for clients without TLS and SASL."""
        return self.options.get(SECURITY_PROTOCOL, "PLAINTEXT").upper() == "PLAINTEXT"


@click.command()
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic to read; repeatable.")
@reader_options("An option of the source, such as kafka.security.protocol=SASL_SSL; repeatable.")
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="The checkpoint of a streaming query to look at.",
)
@jars_option
@click.option(
    "--master",
    metavar="URL",
    default="local[2]",
    show_default=True,
    help="Where to start a session, to look from its executors.",
)
@click.option("--no-session", is_flag=True, help="Start no session: look from this process only.")
@cluster_options
@json_option(Finding, streams=True)
def doctor(
    topics: tuple[str, ...],
    options: Mapping[str, str],
    checkpoint: str | None,
    jars: str | None,
    master: str,
    no_session: bool,
    cluster: Cluster,
    output: Output,
) -> int:
    """Find out why Spark does not read or write Kafka, and say what to do.

    Looks at Java, at the jars, at the brokers, and at the topics; then starts a session, connects to the
    brokers from its executors, and reads a record of each topic as a program would. Nothing is changed.

    Exit status 1 if there is a problem; a warning leaves it at 0.
    """
    question = Question(
        cluster,
        topics,
        options,
        None if jars is None else Path(jars),
        None if checkpoint is None else Path(checkpoint),
        None if no_session else master,
    )
    width = shutil.get_terminal_size().columns if output.form is Form.TABLES else None
    status = 0
    for finding in examine(question):
        if finding.level is Level.PROBLEM:
            status = 1
        output.show(finding, shown(finding, width))
    return status


# --- the examination --------------------------------------------------------------------------------


def examine(question: Question, session: SparkSession | None = None) -> Iterator[Finding]:
    """All findings, as they are made; with a session, that is looked at instead of one started for it."""
    has_problem = False
    addresses: list[Address] = []
    for finding in _about_this_machine(question, session):
        has_problem = has_problem or finding.level is Level.PROBLEM
        yield finding
    for found in _about_cluster(question):
        if isinstance(found, Finding):
            yield found
        else:
            addresses = found
    if session is not None:
        yield from _through(session, question, addresses)
    elif question.master is None:
        return
    elif has_problem:
        yield skipped("session", "Session, executors and a read: Java or the jars are wrong.")
    else:
        yield from _in_a_session(question, question.master, addresses)


def _about_this_machine(question: Question, session: SparkSession | None) -> Iterator[Finding]:
    """Check Java and the jars, unless a session runs with them already."""
    if session is not None:
        return
    from pykafka_broker.spark import installation, java
    from pykafka_broker.spark.releases import line_of

    try:
        installed = installation.look()
        line = line_of(installed.spark)
    except SparkError as error:
        yield of_error("jars", "pyspark", error)
        return
    found = java.look()
    yield from of_faults("java", "" if found is None else found.path, java.faults(found, line)) or [
        ok(
            "java",
            found.path,
            f"{found.path} is Java {found.version}, which Spark {installed.spark} runs on.",
        )
        for found in [found]
        if found is not None
    ]
    yield from about_jars(installed, question.jars)


def about_jars(installed: Installation, folder: Path | None) -> list[Finding]:
    """Whether the connector fits the Spark that is installed."""
    from pykafka_broker.spark.classpath import Wanted, faults
    from pykafka_broker.spark.releases import connector

    found = []
    if not installed.is_of_one_version:
        found.append(
            problem(
                "jars",
                str(installed.home),
                f"pyspark is {installed.pyspark}, and the Spark in {installed.home} is {installed.spark}: "
                "they do not understand each other.",
                f"Unset SPARK_HOME, or:\n  pip install pyspark=={installed.spark}",
            )
        )
    own = [jar for jar in installed.jars if jar.startswith(KAFKA_JARS)]
    given = [] if folder is None else sorted(path.name for path in folder.glob("*.jar"))
    if not own and folder is None:
        coordinates = connector(installed.spark, installed.scala)
        found.append(ok("jars", str(coordinates), f"Spark {installed.spark} takes {coordinates}, from Ivy."))
        return found
    where = str(folder or installed.home / "jars")
    wrong = of_faults("jars", where, faults([*own, *given], Wanted(installed.spark, installed.scala)))
    return found + (wrong or [ok("jars", where, f"The jars in {where} fit Spark {installed.spark}.")])


def _about_cluster(question: Question) -> Iterator[Finding | list[Address]]:
    """Brokers, topics and checkpoint; and the addresses that brokers advertise."""
    from pykafka_broker.cli.doctor import brokers, reach
    from pykafka_broker.cli.doctor.examination import Refusal, guarded

    if not question.speaks_plain:
        yield skipped(
            "connection", "Brokers, topics and checkpoint: asked through Spark only, in TLS or SASL."
        )
        yield parse_addresses(question.cluster.bootstrap_server)
        return
    reached = None
    for address in parse_addresses(question.cluster.bootstrap_server):
        answer = reach.probe(address, question.cluster.timeout_s)
        yield reach.about_answer(address, answer)
        if reached is None and answer.kind is reach.Kind.KAFKA:
            reached = address
    if reached is None:
        yield skipped("brokers", "Brokers, topics and checkpoint: no broker answers.")
        return
    with question.cluster.connect() as client:
        try:
            cluster, advertised = brokers.look(client)
        except Refusal as error:
            refusal = reach.about_listener(reached, [reach.METADATA], error)
            assert refusal is not None
            yield refusal
            return
        yield from brokers.judge(reached, cluster, advertised)
        yield [Address(*address) for address in cluster.brokers.values()]
        yield from guarded("topics", _about_topics(client, question))
        if question.checkpoint is not None:
            yield from guarded("checkpoint", _about_checkpoint(client, question.checkpoint))


def _about_topics(client: Client, question: Question) -> Iterator[Finding]:
    from pykafka_broker.cli.doctor import topics
    from pykafka_broker.client.metadata import error_of, topic_error
    from pykafka_broker.protocol.errors import ErrorCode
    from pykafka_broker.spark.checkpoint.topics import look

    for name in question.topics:
        [topic] = client.metadata([name]).topics
        code = error_of(topic)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            existing = [str(t.name) for t in client.metadata(None).topics]
            yield topics.judge_missing(name, existing, topics.creates_topics(client))
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            yield not_authorized(name)
        elif code:
            yield problem(
                "topics", name, f"{topic_error(code, name).message}", "Look at the logs of the brokers."
            )
        else:
            found = look(client, [name])[name]
            records = sum(end - start for start, end in found.partitions.values())
            yield ok(
                "topics",
                name,
                f"Topic {name!r} has {counted(len(found.partitions), 'partition')} and "
                f"{counted(records, 'offset')} to read.",
            )
            if starting := question.options.get("startingOffsets"):
                yield from about_starting_offsets(name, starting, found.partitions)


def not_authorized(name: str) -> Finding:
    """A topic that this client may not see."""
    return problem(
        "topics",
        name,
        f"The brokers do not let this user see topic {name!r} (TOPIC_AUTHORIZATION_FAILED).",
        "Allow Describe and Read on the topic, with the tool of the cluster, or give the user of the program "
        "by --option kafka.sasl.jaas.config=...",
    )


def about_starting_offsets(
    name: str, starting: str, partitions: Mapping[int, tuple[int, int]]
) -> Iterator[Finding]:
    """Whether the offsets that a program begins with are in the topic."""
    from pykafka_broker.spark.checkpoint.files import kafka_offsets

    if starting in ("earliest", "latest"):
        return
    # -1 and -2 stand for the end and the beginning.
    given = kafka_offsets(starting)
    if given is None:
        message = (
            f"startingOffsets is neither earliest nor latest nor JSON of topics and partitions: {starting}"
        )
        remedy = f'Write startingOffsets={{"{name}":{{"0":0}}}}, with every partition.'
        yield problem("topics", name, message, remedy)
        return
    asked = {partition: offset for (topic, partition), offset in given.items() if topic == name}
    if lacking := sorted(set(partitions) - set(asked)):
        yield problem(
            "topics",
            name,
            f"startingOffsets lacks partitions of {name!r} ({', '.join(map(str, lacking[:5]))}); Spark wants "
            "all of them.",
            "Add them; -2 stands for the beginning of a partition, -1 for its end.",
        )
    for partition, offset in sorted(asked.items()):
        start, end = partitions.get(partition, (0, -1))
        if offset >= 0 and not start <= offset <= end:
            holds = f"holds {start} to {end}" if end >= 0 else "does not exist"
            yield problem(
                "topics",
                f"{name}-{partition}",
                f"startingOffsets begins at offset {offset} of {name}-{partition}, which {holds}.",
                "Begin at earliest, or at an offset that is there.",
            )


def _about_checkpoint(client: Client, folder: Path) -> Iterator[Finding]:
    from pykafka_broker.cli.spark.checkpoint import sentence, states_of, topics_of
    from pykafka_broker.spark.checkpoint.comparison import SOUND, Standing
    from pykafka_broker.spark.checkpoint.files import read_checkpoint

    try:
        found = read_checkpoint(folder)
        states = states_of(client, found, topics_of(client, found))
    except (SparkError, click.ClickException) as error:
        yield warning("checkpoint", str(folder), str(error), "Give the folder that checkpointLocation names.")
        return
    wrong = [state for state in states if state.standing not in SOUND]
    for state in wrong:
        make = warning if state.standing is Standing.DOUBTFUL else problem
        remedy = f"See how it can go on:\n  pykafka-broker spark checkpoint repair {argument(str(folder))}"
        yield make("checkpoint", f"{state.topic}-{state.partition}", sentence(state), remedy)
    if not wrong:
        count = counted(len(states), "partition")
        yield ok("checkpoint", str(folder), f"The query can go on: {count} fit the checkpoint.")


def _in_a_session(question: Question, master: str, addresses: Sequence[Address]) -> Iterator[Finding]:
    """Start a session, and look through it; the output of its JVM is kept from the terminal."""
    from pykafka_broker.cli.spark.jvm_output import kept_output
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
            yield from _through(session, question, addresses)
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


def _through(session: SparkSession, question: Question, addresses: Sequence[Address]) -> Iterator[Finding]:
    """Check the addresses that the executors reach, and whether Spark reads."""
    from pykafka_broker.spark.executors import reach
    from pykafka_broker.spark.reading import read_once

    timeout_s = question.cluster.timeout_s
    if addresses:
        reached = reach(session, addresses, timeout_s, speaks_plain=question.speaks_plain)
        yield from about_executors(reached)
    for name in question.topics:
        options = {
            "kafka.bootstrap.servers": question.cluster.bootstrap_server,
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


# --- from faults to findings ------------------------------------------------------------------------


def of_faults(check: str, subject: str, faults: Sequence[Fault]) -> list[Finding]:
    """Faults as findings of a check."""
    return [
        (warning if fault.is_warning else problem)(check, subject, fault.message, fault.remedy)
        for fault in faults
    ]


def of_error(check: str, subject: str, error: SparkError) -> Finding:
    """An error as a finding; its first line is the sentence, the others the remedy."""
    message, _, remedy = str(error).partition("\n")
    return problem(check, subject, message, remedy or "pip install 'pykafka-broker[spark]'")
