"""Why Spark does not read or write Kafka here, in sentences, each with its remedy.

    from pykafka_broker.spark.doctor import Question, examine

    for finding in examine(Question("127.0.0.1:9092", ["orders"]), spark):
        print(finding.level, finding.message, finding.remedy)

The checks, in this order; a problem that an earlier one found may leave out a later one:

    java         machine.py      the Java that Spark would start
    jars         machine.py      the Spark that is installed, and the connector that fits it
    packages     machine.py      the Python packages that some jobs need
    connection   `.doctor`       who answers at the bootstrap address
    brokers      `.doctor`       whether the advertised addresses lead to the brokers, from here
    topics       topics.py       whether the topics are there, and may be read; whether offsets to begin with
                                 are in them
    checkpoint   checkpoint.py   whether a query can go on from its checkpoint
    session      session.py      whether a session starts
    executors    session.py      whether its executors reach the brokers
    read         session.py      whether Spark reads the topics, with the options that a program gives

question.py has what is asked, examination.py the checks in their order; those of `.doctor` are in
`pykafka_broker.doctor`. Without a session one is started, unless the question says not to.
"""

from __future__ import annotations

from pykafka_broker.spark.doctor.examination import examine
from pykafka_broker.spark.doctor.question import Question

__all__ = ["Question", "examine"]
