"""`make conformance`: hold every conversation with both brokers, store what came out, and write the page.
Random walks of the data path follow, which are told and not stored.

Ends with a non-zero status when a difference is not accepted, a conversation does not see with Apache what it
expects, or an accepted difference does not occur any more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase

from interop import pages
from interop.conformance import clusters, data_walk, results, table
from interop.conformance.conversation import Case, cases
from interop.conformance.play import (
    OUR_SETTINGS,
    Result,
    Verdict,
    both_brokers,
    by_settings,
    run,
    sample,
    side_of,
    stale,
    unnoticed,
)
from pykafka_broker.testing.cache import CACHE
from pykafka_broker.testing.processes import PykafkaNode

#: Differences of one conversation that are printed; all are stored.
SHOWN = 12


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m interop.conformance", description=__doc__)
    parser.add_argument(
        "--api", default="", help="only these APIs, by the names of their message files, comma separated"
    )
    parser.add_argument(
        "--only", default="", help="only conversations whose name holds this, or fits this pattern"
    )
    parser.add_argument("--version", type=int, help="only at this version")
    parser.add_argument("--sample", type=int, metavar="K", help="only K of them, chosen by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--walks",
        type=int,
        help=f"random walks of the data path from --seed on; {data_walk.WALKS} if all conversations are held",
    )
    parser.add_argument("--dry", action="store_true", help="store nothing and leave the page alone")
    parser.add_argument(
        "--nodes",
        type=int,
        choices=(1, 3),
        default=1,
        help="3: with clusters of three nodes, of which one is killed meanwhile; stores nothing",
    )
    parser.add_argument("--words", action="store_true", help="tell other words in error messages as well")
    parser.add_argument("--sabotage", action="store_true", help="only prove that every one of them can fail")
    parser.add_argument("--list", action="store_true", help="only name the conversations")
    return parser.parse_args()


def chosen(asked: argparse.Namespace) -> list[Case]:
    apis = [api for api in asked.api.split(",") if api]
    found = [
        case
        for case in cases()
        if (not apis or case.conversation.api in apis)
        and (asked.only in case.conversation.name or fnmatchcase(case.conversation.name, asked.only))
        and (asked.version is None or case.version == asked.version)
    ]
    return sample(found, asked.seed, asked.sample) if asked.sample else found


def walk(asked: argparse.Namespace) -> list[data_walk.Taken]:
    """Take the walks that are taken as well."""
    number = asked.walks
    if number is None:
        everything = not (asked.api or asked.only or asked.sample or asked.version is not None)
        number = data_walk.WALKS if everything else 0
    if not number:
        return []
    with both_brokers() as (apache, ours):
        chosen = data_walk.walks(asked.seed, number, data_walk.STEPS)
        return data_walk.run(chosen, apache, ours, lambda difference: print(difference, flush=True))


def report(result: Result, told: Container[Verdict]) -> None:
    if result.verdict in told:
        lines = [f"{result.verdict.value}: {result.case}" + (f": {result.problem}" if result.problem else "")]
        lines += [f"    {difference}" for difference in result.differences[:SHOWN]]
        if len(result.differences) > SHOWN:
            lines.append(f"    and {len(result.differences) - SHOWN} more")
        print("\n".join(lines), flush=True)


def with_several_nodes(playing: Sequence[Case], tell: Callable[[Result], None]) -> int:
    """Hold them with clusters, new ones for each of their settings; 1 if something differs."""
    began = time.monotonic()
    came_out: list[Result] = []
    for settings, cases_with in clusters.by_clusters(playing):
        kind = "secured nodes" if settings else "nodes"
        print(f"{len(cases_with)} conversations with {kind}", flush=True)
        with clusters.both_clusters(settings) as (apache, ours), ExitStack() as in_trouble:
            in_trouble.callback(keep_logs, kind.replace(" ", "-"), apache, ours)
            found = clusters.run_with_a_kill(
                cases_with, apache, ours, tell, lambda line: print(line, flush=True)
            )
            came_out += found
            if all(map(clusters.is_fine, found)):
                in_trouble.pop_all()
    wrong = [result for result in came_out if not clusters.is_fine(result)]
    counts = table.totals(results.merge({}, came_out))
    print(f"{table.summary(counts)}, in {time.monotonic() - began:.0f} s")
    otherwise = sorted(
        {result.case.conversation.id for result in came_out if result.problem}
        - {result.case.conversation.id for result in wrong}
    )
    if otherwise:
        print(f"alike on both sides, but otherwise than with one node: {', '.join(otherwise)}")
    left_out = len(playing) - len(came_out)
    if left_out:
        print(f"{left_out} were not held: they are about one node, or have settings that no clusters have")
    return 1 if wrong else 0


def keep_logs(kind: str, *both: clusters.Cluster) -> None:
    for cluster in both:
        logs = cluster.several.keep_logs(CACHE / f"conformance-{kind}-{cluster.name}")
        print(f"the logs of the nodes ({cluster.name}) are in {logs}")


def main() -> int:
    asked = options()
    playing = chosen(asked)
    if asked.list:
        print(*playing, sep="\n")
        return 0
    began = time.monotonic()
    groups = by_settings(playing)
    if asked.sabotage:
        found = []
        for settings, group in groups:
            ours_with = {**OUR_SETTINGS, **settings}
            with PykafkaNode(ours_with) as honest, PykafkaNode(ours_with) as other:
                found += unnoticed(group, side_of(honest), side_of(other))
        print(*found, f"{len(playing) - len(found)} of {len(playing)} conversations can fail", sep="\n")
        return 1 if found else 0
    told = set(Verdict) - {Verdict.EQUAL} if asked.words else {Verdict.DIFFERENT, Verdict.BROKEN}
    print(f"{len(playing)} conversations", flush=True)
    if asked.nodes > 1:
        return with_several_nodes(playing, lambda result: report(result, told))
    came_out = []
    for settings, group in groups:
        with both_brokers(settings) as (apache, ours):
            came_out += run(group, apache, ours, lambda result: report(result, told))
    walked = walk(asked)
    if not asked.dry:
        results.store(results.merge(results.load(), came_out))
        pages.write()
    counts = table.totals(results.merge({}, came_out))
    forgotten = stale(came_out, cases())
    for entry in forgotten:
        print(f"stale: nothing differs any more as accepted under {entry.name!r}")
    if walked:
        print(data_walk.summary(walked))
    print(f"{table.summary(counts)}, in {time.monotonic() - began:.0f} s")
    differs = counts[Verdict.DIFFERENT] or counts[Verdict.BROKEN] or not all(each.is_equal for each in walked)
    return 1 if forgotten or differs else 0


if __name__ == "__main__":
    sys.exit(main())
