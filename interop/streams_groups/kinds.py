"""The kinds of questions: how one is made up, and how it is answered here."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from interop.streams_groups import Json
from interop.streams_groups.assignments import assigned, random_assignment
from interop.streams_groups.records import random_records, written
from interop.streams_groups.steps import random_step, step
from interop.streams_groups.topologies import configured_topology, random_topology

#: A question and Apache Kafka's answer on each line.
GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "streams_groups.jsonl"

KINDS: dict[str, tuple[Callable[[random.Random], Json], Callable[[Json], object]]] = {
    "assignment": (random_assignment, assigned),
    "topology": (random_topology, configured_topology),
    "step": (random_step, step),
    "records": (random_records, written),
}
