"""`spark doctor`: shows what `pykafka_broker.spark.doctor` finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from pykafka_broker.cli.cluster import Cluster, cluster_options, connected
from pykafka_broker.cli.doctor import show_findings
from pykafka_broker.cli.names import topic_names
from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.cli.spark.options import jars_option
from pykafka_broker.cli.spark.session_options import reader_options
from pykafka_broker.doctor.findings import Finding
from pykafka_broker.protocol.errors import ProtocolError
from pykafka_broker.spark.doctor import Question, examine
from pykafka_broker.spark.security import source_options


@click.command()
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC",
    shell_complete=topic_names,
    help="A topic to read; repeatable.",
)
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
    help="The Spark master of the session whose executors connect to the brokers.",
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
        cluster.bootstrap_server,
        topics,
        {**source_options(_security_of(cluster)), **options},
        None if jars is None else Path(jars),
        None if checkpoint is None else Path(checkpoint),
        None if no_session else master,
        cluster.timeout_s,
        connected,
    )
    return show_findings(examine(question), cluster, output)


def _security_of(cluster: Cluster) -> dict[str, str]:
    """The client properties that Spark's connector needs for security; none if no broker answers.

    The checks of the doctor report a broker that does not answer.

    Raises:
        KafkaError: the login is refused.
    """
    try:
        return cluster.client_properties()
    except (ProtocolError, OSError):
        return {}
