"""Random walks of the data path (`data_path.py`) beside Apache Kafka: what differs, with the steps it needs.

    python -m interop.conformance.data_walk [--seed N] [--walks K] [--steps S] [--only 3,20,37]

`make conformance` takes some after the conversations. A walk that differs is taken again without more and
more of its steps, as long as it differs; what is left is told, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from interop.conformance.accepted import Accepted
from interop.conformance.compare import MISSING, Difference
from interop.conformance.conversation import Case, Conversation
from interop.conformance.data_path import DataPath, Entry
from interop.conformance.play import Result, Verdict, both_brokers, judge, play
from interop.conformance.talk import Side, Talk

#: The walks of `make conformance`: about a minute on two cores.
WALKS, STEPS = 200, 80
#: How often a walk that differs is taken again, at most, to shorten it.
ATTEMPTS = 60
#: Differences that are told of one walk.
SHOWN = 4
#: Of one difference, so many characters.
WIDTH = 600

#: Differences that conversations show, and `accepted.ACCEPTED` says why they are meant.
ACCEPTED = (
    Accepted(
        "aborted transactions are named by their start",
        "data_path/*",
        {"*.aborted_transactions.order": "*"},
        "Apache Kafka names them in the order of their ends.",
    ),
    Accepted(
        "a read ends with a whole batch",
        "data_path/*",
        {"*.records.*": MISSING},
        "Apache Kafka fills an answer up to the limit with the beginning of one more batch.",
        apache='"* bytes of a torn batch"',
    ),
    Accepted(
        "a commit that comes too late fences its producer",
        "data_path/*",
        {"* EndTxn v*.error_code": '"90 PRODUCER_FENCED"'},
        "Apache Kafka 4.3 answers INVALID_TXN_STATE after an abort, later releases do not (KAFKA-20785).",
        apache='"48 INVALID_TXN_STATE"',
    ),
)


@dataclass(frozen=True)
class Walk:
    seed: int
    #: Those of its steps that are taken.
    steps: tuple[int, ...]


@dataclass
class Taken:
    """The outcome of a walk."""

    walk: Walk
    result: Result
    answers: int = 0
    #: The settings of its topic.
    configs: dict[str, str] = field(default_factory=dict)
    #: The requests.
    told: Sequence[Entry] = ()

    @property
    def is_equal(self) -> bool:
        return self.result.verdict not in (Verdict.DIFFERENT, Verdict.BROKEN)

    @property
    def differing(self) -> list[Difference]:
        """Those that nothing accepts."""
        case = self.result.case
        return [
            difference
            for difference in self.result.of_value
            if not any(entry.matches(case, difference) for entry in ACCEPTED)
        ]

    @property
    def differing_answers(self) -> int:
        return len({each.path.partition(" ")[0] for each in self.differing})

    @property
    def up_to_the_first(self) -> list[Entry]:
        """The requests up to the first answer that differs."""
        numbers = [int(number) for each in self.differing if (number := each.path.split()[0]).isdigit()]
        first = min(numbers, default=sys.maxsize)
        return [entry for entry in self.told if entry.answers < first]

    @property
    def first_step(self) -> int:
        """The step with the first answer that differs; the last one if the walk broke off."""
        told = self.up_to_the_first
        return told[-1].step if told else 0


_attempts = count()


def take(walk: Walk, apache: Side, ours: Side) -> Taken:
    """The same walk with both, from the same moment on. Its names are new each time: a coordinator remembers
    transactional ids.
    """
    paths: list[DataPath] = []
    go = partial(follow, walk, int(time.time() * 1000), paths.append)
    name = f"seed_{walk.seed}_{next(_attempts)}"
    case = Case(Conversation("data_path", name, (0,), True, False, go), 0)
    theirs, mine = play(case, apache), play(case, ours)
    taken = Taken(walk, judge(case, theirs, mine, ACCEPTED), len(theirs.answers))
    if paths:
        taken.configs, taken.told = paths[0].configs, paths[0].told
    return taken


def follow(walk: Walk, now_ms: int, begun: Callable[[DataPath], None], talk: Talk) -> None:
    path = DataPath(talk, walk.seed, now_ms)
    begun(path)
    for step in walk.steps:
        path.step(step)
    path.finish()


def shorten(taken: Taken, again: Callable[[Walk], Taken], attempts: int = ATTEMPTS) -> Taken:
    """The same walk with few enough steps to differ still: parts of it are left out, ever smaller ones."""
    steps = tuple(step for step in taken.walk.steps if step <= taken.first_step)
    size = len(steps)
    best = taken
    while size >= 1 and attempts > 0:
        parts = [steps[start : start + size] for start in range(0, len(steps), size)]
        for part in reversed(parts):  # what stands behind a difference is never needed
            if attempts == 0:
                break
            attempts -= 1
            shorter = again(Walk(taken.walk.seed, tuple(step for step in steps if step not in part)))
            if not shorter.is_equal:
                best, steps = shorter, shorter.walk.steps
        size //= 2
    return best


def tell(taken: Taken, shortest: Taken, steps: int) -> str:
    """A difference in a few lines: the command that repeats it, what was asked, and what was answered."""
    walk = taken.walk
    only = ",".join(map(str, shortest.walk.steps))
    asked = shortest.up_to_the_first
    # Of what a walk ends with, the question alone that is answered otherwise.
    asked = [entry for entry in asked if entry.step < len(walk.steps) or entry is asked[-1]]
    lines = [
        f"{taken.result.verdict.value}: walk {walk.seed}, first at step {taken.first_step}; to repeat it:",
        "    python -m interop.conformance.data_walk "
        f"--seed {walk.seed} --walks 1 --steps {steps} --only {only}",
        f"    the topic: {shortest.configs or 'at the defaults'}",
        *(f"    {entry.step}: {entry.text}" for entry in asked),
        *(f"        {str(difference)[:WIDTH]}" for difference in shortest.differing[:SHOWN]),
    ]
    if shortest.result.problem:
        lines.append(f"        {shortest.result.problem}")
    return "\n".join(lines)


def run(
    walks: Iterable[Walk], apache: Side, ours: Side, report: Callable[[str], None], attempts: int = ATTEMPTS
) -> list[Taken]:
    """Take every walk; those that differ are shortened and told."""
    found = []
    for walk in walks:
        taken = take(walk, apache, ours)
        found.append(taken)
        if not taken.is_equal:
            shortest = shorten(taken, lambda shorter: take(shorter, apache, ours), attempts)
            report(tell(taken, shortest, max(walk.steps, default=0) + 1))
    return found


def walks(seed: int, number: int, steps: int) -> list[Walk]:
    return [Walk(each, tuple(range(steps))) for each in range(seed, seed + number)]


def summary(found: Sequence[Taken]) -> str:
    equal = sum(taken.is_equal for taken in found)
    answers = sum(taken.answers for taken in found)
    differing = sum(taken.differing_answers for taken in found)
    return f"{equal} of {len(found)} walks of the data path equal, {answers - differing} of {answers} answers"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m interop.conformance.data_walk", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--only", help="only these steps, comma separated")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="to shorten a walk")
    asked = parser.parse_args()
    chosen = walks(asked.seed, asked.walks, asked.steps)
    if asked.only is not None:
        steps = tuple(int(step) for step in asked.only.split(",") if step)
        chosen = [Walk(walk.seed, steps) for walk in chosen]
    with both_brokers() as (apache, ours):
        began = time.monotonic()
        found = run(chosen, apache, ours, lambda told: print(told, flush=True), asked.attempts)
    print(f"{summary(found)}, in {time.monotonic() - began:.0f} s")
    return 0 if all(taken.is_equal for taken in found) else 1


if __name__ == "__main__":
    sys.exit(main())
