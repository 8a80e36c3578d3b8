"""A replacement cut short at any moment, by a kill or by a disk that kept any of the last renames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

from pykafka_broker.log.disk.names import offset_file
from pykafka_broker.log.segment.swap import Renaming, into_service, out_of_service, steps_at_start, to_swap

KINDS = (".log", ".index", ".timeindex")
BASE, END = 100, 300
REPLACED = (100, 200)

Folder = dict[str, str]


def before() -> Folder:
    """Segments 0, 100, 200 and 300 and their side files; 100 has aborted transactions; 100 and 200 are
    cleaned into one.
    """
    files = {offset_file(base, kind): "old" for base in (0, 100, 200, 300) for kind in KINDS}
    files[offset_file(100, ".txnindex")] = "old"
    files |= {offset_file(base, ".snapshot"): "snapshot" for base in (100, 200, 300)}
    files |= {offset_file(100, kind + ".cleaned"): "new" for kind in (*KINDS, ".txnindex")}
    return files


def after(*, window: Iterable[int] = (100, 300)) -> Folder:
    files = {offset_file(base, kind): "old" for base in (0, 300) for kind in KINDS}
    files |= {offset_file(100, kind): "new" for kind in (*KINDS, ".txnindex")}
    return files | {offset_file(base, ".snapshot"): "snapshot" for base in window}


def untouched() -> Folder:
    return {name: content for name, content in before().items() if not name.endswith(".cleaned")}


def done(files: Folder, steps: Iterable[Renaming]) -> Folder:
    files = dict(files)
    for old, new in steps:
        if old in files:
            content = files.pop(old)
            if new is not None:
                files[new] = content
    return files


def recovered(files: Folder) -> Folder:
    return done(files, steps_at_start(files, lambda name: END))


def subsets(steps: list[Renaming]) -> Iterator[tuple[Renaming, ...]]:
    return chain.from_iterable(combinations(steps, count) for count in range(len(steps) + 1))


PHASES = (list(to_swap(BASE)), list(out_of_service(BASE, REPLACED)), list(into_service(BASE)))


def test_before_all_are_swap_files_the_replacement_is_undone() -> None:
    for some in subsets(PHASES[0]):
        if len(some) < len(PHASES[0]):
            assert recovered(done(before(), some)) == untouched(), some


def test_from_then_on_it_is_finished_whatever_the_disk_kept() -> None:
    files = done(before(), PHASES[0])
    for some in subsets([step for step in PHASES[1] if step.old in files]):
        found = recovered(done(files, some))
        assert found == after(), some
    files = done(files, PHASES[1])
    for some in subsets(PHASES[2]):
        assert recovered(done(files, some)) == after(), some


def test_a_recovery_that_is_cut_short_is_recovered_from() -> None:
    for phases in (PHASES[:1], PHASES[:2]):
        files = before()
        for phase in phases:
            files = done(files, phase)
        steps = steps_at_start(files, lambda name: END)
        for count in range(len(steps)):
            assert recovered(done(files, steps[:count])) == after(), steps[:count]


def test_other_leftovers_go_and_what_is_not_ours_stays() -> None:
    files = {"leader-epoch-checkpoint": "", "leader-epoch-checkpoint.tmp": "", "notes.txt": ""}
    files |= {offset_file(0, ".log"): "", offset_file(0, ".log.deleted"): ""}
    assert recovered(files).keys() == {"leader-epoch-checkpoint", "notes.txt", offset_file(0, ".log")}
