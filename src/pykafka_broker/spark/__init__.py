"""Spark beside any Kafka cluster: sessions, archives, replays, audits, checkpoints, and log folders.

    session.py        kafka_session(): a session with the connector that fits the installed Spark
    releases.py       the lines of Spark, and the coordinates of connector and tables for each
    installation.py   the Spark that Python would run
    python_packages.py  the packages that jobs need beside pyspark
    java.py           the Java that it would start
    poms.py           the dependencies of a jar
    repository.py     files of a Maven repository, checked
    jars.py           the jars of a session in a folder, for sessions without Ivy
    classpath.py      whether jars fit together
    archive/          archive_topics(): topics to a lake table
    audit/            audit(), audit_archive(), audit_mirror(): every record, once, in order?
    doctor/           why Spark does not read or write Kafka here
    checkpoint/       a streaming checkpoint beside the topics that it reads, and its repair
    executors.py      the addresses that the executors of a session reach
    jvm_output.py     what a JVM prints, kept from the terminal
    reading.py        one read of Kafka through Spark, and the meaning of its failure
    lag.py            commit_progress(): the progress of a streaming query, where tools look for lag
    kafka_log/        format("kafka_log"): log folders as a data source, without a broker
    replay/           tables, log folders and topics to topics again, each record once
    progress.py       the end offsets of a query's batches, by the progress that Spark tells its listeners
    kafka_format.py   the columns of a record, of Spark's own source and of archives
    errors.py         SparkError, and Fault: a problem in words, with its remedy

Needs the extra `spark`; only modules that start or use a session import pyspark. Everything is imported on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykafka_broker.spark.errors import SparkError
    from pykafka_broker.spark.kafka_log.registration import register_kafka_log
    from pykafka_broker.spark.lag import commit_progress
    from pykafka_broker.spark.session import kafka_session

__all__ = ["SparkError", "commit_progress", "kafka_session", "register_kafka_log"]


def __getattr__(name: str) -> Any:
    if name == "SparkError":
        from pykafka_broker.spark.errors import SparkError

        return SparkError
    if name == "commit_progress":
        from pykafka_broker.spark.installation import pyspark_version

        pyspark_version()  # says how to install pyspark; an import would only fail
        from pykafka_broker.spark.lag import commit_progress

        return commit_progress
    if name == "kafka_session":
        from pykafka_broker.spark.session import kafka_session

        return kafka_session
    if name == "register_kafka_log":
        from pykafka_broker.spark.kafka_log.registration import register_kafka_log

        return register_kafka_log
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
