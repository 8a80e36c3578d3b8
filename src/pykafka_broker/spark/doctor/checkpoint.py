"""The check of a checkpoint: can its query go on?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pykafka_broker.client.blocking import Client
from pykafka_broker.doctor.findings import Finding, ok, problem, warning
from pykafka_broker.spark.checkpoint.comparison import SOUND, Standing
from pykafka_broker.spark.checkpoint.files import read_checkpoint
from pykafka_broker.spark.checkpoint.inspection import states_of, topics_of
from pykafka_broker.spark.checkpoint.sentences import sentence
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.system.wording import argument, counted


def about_checkpoint(client: Client, folder: Path, asked: Sequence[str] = ()) -> Iterator[Finding]:
    """Compare the checkpoint with its topics. `asked` are topics that its query is believed to read."""
    try:
        found = read_checkpoint(folder)
        states = states_of(client, found, topics_of(client, found))
    except SparkError as error:
        yield warning("checkpoint", str(folder), str(error), "Give the folder that checkpointLocation names.")
        return
    read = {state.topic for state in states}
    for topic in sorted({*asked} - read):
        message = f"Its query reads {', '.join(sorted(read))}, and not {topic}."
        yield warning(
            "checkpoint", str(folder), message, f"Give the checkpoint of the query that reads {topic}."
        )
    wrong = [state for state in states if state.standing not in SOUND]
    for state in wrong:
        make = warning if state.standing is Standing.DOUBTFUL else problem
        remedy = f"See how it can go on:\n  pykafka-broker spark checkpoint repair {argument(str(folder))}"
        yield make("checkpoint", f"{state.topic}-{state.partition}", sentence(state), remedy)
    if not wrong:
        count = counted(len(states), "partition")
        yield ok("checkpoint", str(folder), f"The query can go on: {count} fit the checkpoint.")
