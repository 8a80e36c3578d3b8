"""The default partitioner, with hashes computed by the Java client's own tests."""

from __future__ import annotations

import pytest

from pykafka_broker.cli.partitioner import Partitioner, murmur2, partition_for


@pytest.mark.parametrize(
    ("text", "signed_hash"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_hashes_are_those_of_the_java_client(text: str, signed_hash: int) -> None:
    assert murmur2(text.encode()) == signed_hash & 0xFFFFFFFF


def test_the_sign_of_a_hash_does_not_count() -> None:
    assert partition_for(b"foobar", 7) == (-790332482 & 0x7FFFFFFF) % 7


def test_records_without_a_key_stay_together_until_the_next_batch() -> None:
    partitioner = Partitioner([0, 1, 2], [0, 1, 2])
    first = [partitioner.choose(None) for _ in range(20)]
    assert len(set(first)) == 1
    seen = set()
    for _ in range(100):
        partitioner.next_batch()
        seen.add(partitioner.choose(None))
    assert seen == {0, 1, 2}


def test_records_without_a_key_go_where_there_is_a_leader_and_keys_keep_their_partitions() -> None:
    partitioner = Partitioner([0, 1, 2], [2])
    assert {partitioner.choose(None), partitioner.choose(b"foobar")} == {2, partition_for(b"foobar", 3)}
    assert Partitioner([0], []).choose(None) == 0
