"""What a process believes of a segment: its own writes, and what it has verified."""

from __future__ import annotations

from pykafka_broker.log.segment.damage import Damage
from pykafka_broker.log.segment.segment_files import SegmentFiles
from pykafka_broker.log.segment.trust import Trust
from pykafka_broker.testing.memory_files import MemoryFiles

PATH = "/logs/orders-0/00000000000000000000"


def trust_of(files: MemoryFiles, *, unverified_end: int = 0) -> Trust:
    trust = Trust(SegmentFiles(files, PATH))
    trust.unverified_end = unverified_end
    return trust


def test_what_this_process_wrote_is_verified() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=100)

    assert trust.is_verified(100, 200)
    assert not trust.is_verified(99, 200)
    assert not trust.is_verified(0, 100)


def test_verified_spans_are_joined_where_they_touch() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=1000)
    trust.note_verified(100, 200)
    trust.note_verified(300, 400)
    assert list(trust.verified_spans) == [(100, 200), (300, 400)]

    trust.note_verified(200, 300)

    assert trust.verified_spans == ((100, 400),)
    assert trust.is_verified(150, 350)
    assert not trust.is_verified(150, 401)


def test_when_everything_is_verified_the_spans_are_forgotten() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=1000)
    trust.note_verified(0, 600)
    trust.note_verified(500, 1200)

    assert (trust.unverified_end, trust.verified_spans) == (0, ())
    assert trust.is_verified(0, 5000)


def test_a_scan_verifies_everything_that_it_does_not_call_damaged() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=1000)
    trust.note_scanned((Damage(10, 20, 1, 2),))

    assert (trust.was_scanned, trust.damages, trust.unverified_end) == (True, (Damage(10, 20, 1, 2),), 0)


def test_damages_are_known_after_a_restart_until_there_are_none() -> None:
    files = MemoryFiles()
    files.make_directory("/logs")
    files.make_directory("/logs/orders-0")
    trust = trust_of(files)
    trust.damages = (Damage(10, 20, 1, 2),)
    trust.save_damages()

    again = trust_of(files)
    again.load_damages()
    assert again.damages == trust.damages

    again.damages = ()
    again.save_damages()
    assert not files.exists(PATH + ".damaged")


def test_truncation_forgets_the_damage_behind_the_new_end() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=1000)
    trust.damages = (Damage(10, 20, 1, 2), Damage(500, 600, 8, 9))

    trust.truncate_to(550)

    assert (list(trust.damages), trust.unverified_end) == ([Damage(10, 20, 1, 2)], 550)


def test_truncation_forgets_records_that_were_missing_at_the_new_end() -> None:
    trust = trust_of(MemoryFiles(), unverified_end=1000)
    trust.damages = (Damage(550, 550, 8, 9),)

    trust.truncate_to(550)

    assert list(trust.damages) == []
