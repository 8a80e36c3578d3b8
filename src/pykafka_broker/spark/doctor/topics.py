"""The checks of the topics that Spark is to read: are they there, may they be read, from these offsets?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.metadata import code_of, topic_error
from pykafka_broker.doctor import topics
from pykafka_broker.doctor.findings import Finding, ok, problem
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.spark.checkpoint.files import kafka_offsets
from pykafka_broker.spark.checkpoint.topics import look
from pykafka_broker.system.wording import counted


def about_topics(client: Client, names: Sequence[str], starting: str | None) -> Iterator[Finding]:
    """Look at each topic.

    Args:
        client: Asks the cluster.
        names: The topics.
        starting: As Spark's option `startingOffsets` has them, if it is given.
    """
    for name in names:
        [topic] = client.metadata([name]).topics
        code = code_of(topic)
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
            try:
                found = look(client, [name])[name]
            except KafkaError as error:
                # It may have been forbidden since.
                if error.code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                    raise
                yield not_authorized(name)
                continue
            records = sum(end - start for start, end in found.partitions.values())
            yield ok(
                "topics",
                name,
                f"Topic {name!r} has {counted(len(found.partitions), 'partition')} and "
                f"{counted(records, 'offset')} to read.",
            )
            if starting:
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
