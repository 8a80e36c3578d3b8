"""`spark`: set up a Spark that reads and writes this or any Kafka cluster, and find its faults.

    archive.py      topics to a lake table
    audit.py        whether a topic, its archive or its mirror has every record, once, in order
    checkpoint.py   a streaming checkpoint beside its topics, and its repair
    compact.py      small files of an archive become large ones
    conf.py         settings of a session that fits the installed Spark
    dead_letters.py records of an archive that could not be decoded
    doctor.py       why Spark does not read or write Kafka here
    jars.py         the jars of a session in a folder
    replay.py       a table, a log folder or a topic to a topic

`pykafka_broker.spark` does the work; here are the options and the words.
"""

from __future__ import annotations

import click

from pykafka_broker.cli import Group
from pykafka_broker.cli.spark.archive import archive
from pykafka_broker.cli.spark.audit import audit
from pykafka_broker.cli.spark.checkpoint import checkpoint
from pykafka_broker.cli.spark.compact import compact
from pykafka_broker.cli.spark.conf import conf
from pykafka_broker.cli.spark.dead_letters import dead_letters
from pykafka_broker.cli.spark.doctor import doctor
from pykafka_broker.cli.spark.jars import jars
from pykafka_broker.cli.spark.replay import replay


@click.group(cls=Group)
def spark() -> None:
    """Run Spark beside Kafka: sessions, jobs, and what is wrong."""


spark.add_command(archive)
spark.add_command(audit)
spark.add_command(checkpoint)
spark.add_command(compact)
spark.add_command(conf)
spark.add_command(dead_letters)
spark.add_command(doctor)
spark.add_command(jars)
spark.add_command(replay)
