"""Audits: what aggregates of a topic mean, without a session."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import pytest

from pykafka_broker.client.blocking import Client
from pykafka_broker.protocol.errors import ErrorCode, KafkaError
from pykafka_broker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from pykafka_broker.protocol.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from pykafka_broker.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from pykafka_broker.protocol.records.batch import BatchFields, build_batch, read_header
from pykafka_broker.protocol.records.control import ControlRecordType, encode_key
from pykafka_broker.spark.audit.comparing import (
    Bucket,
    Comparison,
    Difference,
    Place,
    compare_blocks,
    differing_buckets,
    shared_range,
)
from pykafka_broker.spark.audit.explaining import Explanation, Stretch, Why, explain
from pykafka_broker.spark.audit.judging import Judge, newest_by_partition
from pykafka_broker.spark.audit.keys import Keys
from pykafka_broker.spark.audit.offsets import BLOCK_OFFSETS, Block, Span, by_partition, gaps
from pykafka_broker.spark.audit.report import Check, Finding, Level
from pykafka_broker.spark.audit.seen import NONE, Seen
from pykafka_broker.spark.audit.times import Doubtful, Late, doubtful, late_at_most_ms
from pykafka_broker.spark.audit.topic_log import TopicLog, stretch_of


def block(
    number: int = 0, offsets: Iterable[int] = (), *, ms: tuple[int, int] | None = None, ahead: int = 0
) -> Block:
    """A block as Spark tells it, with these offsets in it."""
    read = list(offsets)
    first, last = min(read), max(read)
    bits = sum(1 << offset % BLOCK_OFFSETS for offset in set(read))
    is_dense = len(set(read)) == last - first + 1
    return Block(
        partition=0,
        number=number,
        rows=len(read),
        offsets=len(set(read)),
        first_offset=first,
        last_offset=last,
        bitmap=None if is_dense else bits.to_bytes(BLOCK_OFFSETS // 8, "little"),
        oldest_ms=None if ms is None else ms[0],
        newest_ms=None if ms is None else ms[1],
        ahead=ahead,
        size_bytes=10 * len(read),
        digest=(sum(read), len(read)),
    )


# --- offsets


def test_a_partition_without_gaps_has_none_over_several_blocks() -> None:
    blocks = [block(0, range(5, BLOCK_OFFSETS)), block(1, range(BLOCK_OFFSETS, BLOCK_OFFSETS + 3))]
    assert list(gaps(blocks, Span(5, BLOCK_OFFSETS + 3))) == []


def test_gaps_are_found_before_in_between_and_behind_what_was_read() -> None:
    last = BLOCK_OFFSETS * 3
    blocks = [block(0, [2, 3, 7, BLOCK_OFFSETS - 1]), block(3, [last, last + 2])]
    assert list(gaps(blocks, Span(0, last + 5))) == [
        (0, 2),
        (4, 7),
        (8, BLOCK_OFFSETS - 1),
        (BLOCK_OFFSETS, last),
        (last + 1, last + 2),
        (last + 3, last + 5),
    ]


def test_what_was_read_outside_of_the_range_is_no_matter() -> None:
    assert list(gaps([block(0, [0, 1, 5, 6, 9])], Span(1, 8))) == [(2, 5), (7, 8)]
    assert list(gaps([block(0, [5, 9])], Span(6, 9))) == [(6, 9)]
    assert list(gaps([], Span(3, 5))) == [(3, 5)]
    assert list(gaps([block(0, [5])], Span(3, 3))) == []


def test_gaps_are_those_of_a_set_whatever_was_read() -> None:
    dice = random.Random(13)
    for _ in range(50):
        end = dice.randrange(1, 3 * BLOCK_OFFSETS)
        missing = {dice.randrange(end) for _ in range(dice.randrange(200))}
        read = [offset for offset in range(end) if offset not in missing]
        numbers = sorted({offset // BLOCK_OFFSETS for offset in read})
        blocks = [
            block(number, (offset for offset in read if offset // BLOCK_OFFSETS == number))
            for number in numbers
        ]
        dice.shuffle(blocks)
        ordered = by_partition(blocks).get(0, [])
        assert {o for gap in gaps(ordered, Span(0, end)) for o in range(*gap)} == missing


# --- why


def data(first: int, *offsets: int, last: int | None = None, producer_id: int = -1) -> bytes:
    """A batch from an offset on; with a producer id, of a transaction; with gaps, a compacted one."""
    end = max(offsets) if last is None else last
    return build_batch(
        [(0, None, b"v", ()) for _ in offsets],
        BatchFields(
            base_offset=first,
            producer_id=producer_id,
            transactional=producer_id >= 0,
            offset_deltas=[offset - first for offset in offsets],
            last_offset_delta=end - first,
        ),
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType = ControlRecordType.COMMIT) -> bytes:
    return build_batch(
        [(0, encode_key(kind), bytes(6), ())],
        BatchFields(base_offset=offset, producer_id=producer_id, transactional=True, control=True),
    )


class Log:
    """A partition whose fetches bring so many batches. Aborted transactions: first offset, that of the
    marker, producer id.
    """

    def __init__(
        self, batches: Sequence[bytes], at_once: int = 2, aborted: Iterable[tuple[int, int, int]] = ()
    ) -> None:
        self._batches = batches
        self._at_once = at_once
        self._aborted = list(aborted)
        self.asked: list[int] = []

    def read(self, offset: int) -> Stretch:
        self.asked.append(offset)
        found = [each for each in self._batches if read_header(each).next_offset > offset]
        answer = PartitionData(
            partition_index=0,
            error_code=0,
            high_watermark=0,
            aborted_transactions=[
                AbortedTransaction(producer_id=producer_id, first_offset=first)
                for first, last, producer_id in self._aborted
                if last >= offset
            ],
            records=b"".join(found[: self._at_once]),
        )
        return stretch_of(answer, offset)


def why(log: Log, *spans: tuple[int, int], is_compacted: bool = False, examples: int = 5) -> Explanation:
    return explain((Span(*span) for span in spans), log.read, is_compacted=is_compacted, examples=examples)


def test_markers_and_aborted_records_explain_a_gap() -> None:
    log = Log(
        [
            data(0, 0, 1, producer_id=7),
            marker(2, 7),
            data(3, 3, 4, producer_id=7),
            data(5, 5, producer_id=8),
            marker(6, 7, ControlRecordType.ABORT),
            data(7, 7, producer_id=7),
            marker(8, 8),
            marker(9, 7),
        ],
        at_once=3,
        aborted=[(3, 6, 7)],
    )
    found = why(log, (2, 5), (6, 7), (8, 10))
    assert found.counts == {Why.MARKER: 4, Why.ABORTED: 2}
    assert found.examples == {Why.MARKER: [(2, 3), (6, 7), (8, 10)], Why.ABORTED: [(3, 5)]}
    assert log.asked == [2, 6, 9]


def test_a_record_that_the_log_has_was_lost_on_the_way() -> None:
    log = Log([data(0, *range(10)), data(10, *range(10, 20))])
    found = why(log, (3, 4), (8, 12))
    assert (found.counts, found.examples) == ({Why.LOST: 5}, {Why.LOST: [(3, 4), (8, 12)]})
    assert log.asked == [3]


def test_within_a_compacted_batch_each_offset_is_looked_up() -> None:
    log = Log([data(0, 0, 4, 9, last=9), data(15, 15)])
    found = why(log, (1, 4), (5, 15), is_compacted=True)
    assert found.counts == {Why.COMPACTED: 12, Why.LOST: 1}
    assert found.examples[Why.LOST] == [(9, 10)]


def test_a_hole_in_a_log_that_is_not_compacted_is_not_explained() -> None:
    holes = Log([data(0, 0), data(5, 5)])
    assert why(holes, (1, 5)).counts == {Why.UNEXPLAINED: 4}
    assert why(holes, (1, 5), is_compacted=True).counts == {Why.COMPACTED: 4}
    assert why(holes, (6, 9)).counts == {Why.UNEXPLAINED: 3}


def test_of_many_gaps_a_few_are_named() -> None:
    log = Log([data(first, first, first + 1) for first in range(0, 40, 2)])
    found = why(log, *((offset, offset + 1) for offset in range(0, 40, 4)), examples=2)
    assert (found.count(Why.LOST), found.examples[Why.LOST]) == (10, [(0, 1), (4, 5)])


class Throttling:
    """A client whose fetches are answered so: the time of the throttle, and the records."""

    def __init__(self, answers: Iterable[tuple[int, bytes]]) -> None:
        self.answers = list(answers)

    def topic(self, name: str) -> MetadataResponseTopic:
        partition = MetadataResponsePartition(
            error_code=0, partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1]
        )
        return MetadataResponseTopic(error_code=0, name=name, partitions=[partition])

    def leaders(self, _topic: str) -> dict[int, int]:
        return {0: 1}

    def attempts(self) -> Iterator[bool]:
        last = len(self.answers) - 1
        yield from [number == last for number in range(last + 1)]

    def send(self, request: object, _leader: int = -1) -> object:
        if isinstance(request, DescribeConfigsRequest):
            return DescribeConfigsResponse(
                results=[DescribeConfigsResult(error_code=0, resource_type=2, resource_name="t", configs=[])]
            )
        throttle_time_ms, records = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        found = PartitionData(
            partition_index=0, error_code=0, high_watermark=9, aborted_transactions=[], records=records
        )
        topic = FetchableTopicResponse(topic="t", partitions=[found])
        return FetchResponse(throttle_time_ms=throttle_time_ms, responses=[topic])


def log_of(*answers: tuple[int, bytes]) -> TopicLog:
    return TopicLog(cast(Client, Throttling(answers)), "t")


def test_a_quota_that_holds_records_back_is_not_taken_for_an_empty_log() -> None:
    read = log_of((200, b""), (200, b""), (200, data(5, 5)), (0, b"")).reader(0)
    assert [batch.header.base_offset for batch in read(5).batches] == [5]
    assert log_of((0, b"")).reader(0)(5).batches == []
    with pytest.raises(KafkaError) as held_back:
        log_of((200, b"")).reader(0)(5)
    assert held_back.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_what_is_at_an_offset_does_not_depend_on_how_fetches_are_cut(at_once: int) -> None:
    dice = random.Random(7)
    batches, meaning, aborted, offset = [], dict[int, Why](), [], 0
    while offset < 300:
        size = dice.randrange(1, 5)
        span = range(offset, offset + size)
        if dice.random() < 0.3:
            batches += [data(offset, *span, producer_id=9), marker(span.stop, 9, ControlRecordType.ABORT)]
            aborted.append((offset, span.stop, 9))
            meaning |= dict.fromkeys(span, Why.ABORTED) | {span.stop: Why.MARKER}
            offset = span.stop + 1
        else:
            batches.append(data(offset, *span))
            meaning |= dict.fromkeys(span, Why.LOST)
            offset = span.stop
    log = Log(batches, at_once=at_once, aborted=aborted)
    asked = sorted(dice.sample(sorted(meaning), 60))
    found = why(log, *((each, each + 1) for each in asked), examples=300)
    named = {o: kind for kind, spans in found.examples.items() for span in spans for o in range(*span)}
    assert named == {each: meaning[each] for each in asked}


# --- times


def test_only_blocks_whose_times_are_far_apart_may_have_late_records() -> None:
    end = BLOCK_OFFSETS
    blocks = [
        block(0, [0], ms=(1_000, 2_000)),
        block(1, [end], ms=(1_900, 3_000)),
        block(2, [2 * end]),
        block(3, [3 * end], ms=(1_200, 1_300)),
    ]
    assert late_at_most_ms(blocks) == 1_800
    assert doubtful(blocks, 1_100) == [Doubtful(0, 3, 3_000)]
    assert doubtful(blocks, 999) == [Doubtful(0, 0, None), Doubtful(0, 1, 2_000), Doubtful(0, 3, 3_000)]
    assert doubtful(blocks, 1_800) == []
    assert late_at_most_ms([]) == 0


def test_the_newest_time_is_that_of_partitions_with_times() -> None:
    blocks = {0: [block(0, [0], ms=(1, 5)), block(1, [BLOCK_OFFSETS], ms=(2, 3))], 1: [block(0, [0])]}
    assert newest_by_partition(blocks) == {0: 5}


# --- comparisons


def test_both_sides_should_have_what_the_topic_holds_and_the_archive_has_come_to() -> None:
    archive, topic = [block(0, range(10))], [block(0, range(4, 20))]
    assert shared_range(archive, topic, log_start=None) == (4, 10)
    assert shared_range(archive, topic, log_start=6) == (6, 10)
    assert shared_range(archive, [], log_start=None) == (10, 10)
    assert shared_range(archive, topic, log_start=15) == (10, 10)
    assert shared_range([], topic, log_start=0) == (0, 0)


def test_both_sides_should_have_what_the_job_of_the_archive_has_committed() -> None:
    archive, topic = [block(0, range(10))], [block(0, range(4, 20))]
    assert shared_range(archive, topic, None, Span(0, 16)) == (4, 16)
    assert shared_range(archive, topic, None, Span(0, 8)) == (4, 10)
    assert shared_range([], topic, 4, Span(0, 16)) == (4, 16)
    # A job that began at the end of the topic has nothing of what was before.
    assert shared_range([], topic, 4, Span(12, 16)) == (12, 16)
    assert shared_range([], topic, 4, Span(12, 12)) == (12, 12)


def test_a_lag_is_not_said_to_be_one_where_it_may_be_a_loss() -> None:
    judge = Judge("t")
    [known] = judge.not_yet_here(1, 3, is_known=True)
    assert (known.level, known.message) == (
        Level.REMARK,
        "t-1: 3 records behind the end of the archive, not archived yet.",
    )
    [unknown] = judge.not_yet_here(1, 3, is_known=False)
    assert (unknown.level, unknown.message) == (
        Level.REMARK,
        "t-1: 3 records behind the end of the archive: not archived yet, or lost from its end. With the "
        "checkpoint of the archive job an audit can tell.",
    )
    [nothing] = judge.nothing_here(1, 1_200)
    assert (nothing.level, nothing.message) == (
        Level.FINDING,
        "t-1: no record is in the archive, and the topic has 1,200: lost, or not archived yet. With the "
        "checkpoint of the archive job an audit can tell.",
    )
    assert [*judge.nothing_here(1, 0), *judge.not_yet_here(1, 0, is_known=False)] == []


def test_blocks_that_are_the_same_and_those_of_one_side_need_no_look() -> None:
    def row(*numbers: int, but: int | None = None) -> list[Block]:
        return [
            block(number, [number * BLOCK_OFFSETS + (number == but)] * 3)._replace(digest=(number == but, 0))
            for number in numbers
        ]

    start, end = 2 * BLOCK_OFFSETS, 5 * BLOCK_OFFSETS
    found = compare_blocks({0: row(0, 1, 2, 3, 4)}, {0: row(2, 3, 4, 5, 6, but=3)}, {0: Span(start, end)})
    assert found == Comparison([Place(0, 3, start, end)], {0: 6}, {0: 6})
    lacking = compare_blocks({0: row(2, 4)}, {0: row(2, 3, 4)}, {0: Span(start, end)})
    assert lacking.places == [Place(0, 3, start, end)]


def test_buckets_that_differ_are_told() -> None:
    mine = [Bucket(0, 1, 5, (1, 1)), Bucket(0, 2, 5, (1, 1)), Bucket(1, 1, 5, (1, 1))]
    theirs = [Bucket(0, 1, 5, (1, 1)), Bucket(0, 2, 5, (1, 2)), Bucket(0, 9, 1, (0, 0))]
    assert differing_buckets(mine, theirs) == [(0, 2), (0, 9), (1, 1)]


# --- in words

JUDGE = Judge("t")


def test_lost_records_and_holes_are_findings_and_the_rest_is_sound() -> None:
    explanation = Explanation(2)
    for reason, span in (
        (Why.MARKER, Span(0, 1)),
        (Why.LOST, Span(4, 5)),
        (Why.LOST, Span(7, 9)),
        (Why.LOST, Span(20, 1_020)),
        (Why.UNEXPLAINED, Span(2_000, 2_001)),
    ):
        explanation.note(reason, span)
    assert list(JUDGE.gaps(3, explanation)) == [
        Finding(
            Level.FINDING,
            Check.OFFSETS,
            "t-3",
            1_003,
            "t-3: 1,003 records not read: the log has a record there (offsets 4, 7 to 8 and 1,000 more).",
        ),
        Finding(
            Level.FINDING,
            Check.OFFSETS,
            "t-3",
            1,
            "t-3: 1 record not read: the log has nothing there, and the topic is not compacted "
            "(offset 2000).",
        ),
    ]


def test_without_a_log_a_gap_is_a_finding_unless_it_looks_like_a_marker() -> None:
    def said(*spans: tuple[int, int], are_like_markers: bool) -> list[tuple[Level, str]]:
        named = [Span(*span) for span in spans]
        count = sum(span.length for span in named)
        found = JUDGE.gaps_without_log(0, named, count, are_like_markers=are_like_markers)
        return [(finding.level, finding.message) for finding in found]

    assert said(are_like_markers=True) == []
    assert said((3, 5), are_like_markers=False) == [
        (
            Level.FINDING,
            "t-0: 2 offsets without a record (offsets 3 to 4), and no log says why: lost, compacted, "
            "aborted, or markers of transactions.",
        )
    ]
    assert said((3, 4), are_like_markers=True) == [
        (
            Level.REMARK,
            "t-0: 1 offset without a record before the log begins (offset 3): markers of transactions, as it "
            "seems; what was there cannot be known any more.",
        )
    ]


SOUND = Keys(0, 10, 4, 0, NONE, 0, Seen(6, 1, 9), NONE, None, 0)


def keys_said(found: Keys, *, must_be_unique: bool = False) -> list[tuple[Level, Check, str]]:
    return [(f.level, f.check, f.message) for f in JUDGE.keys(found, must_be_unique=must_be_unique)]


def test_keys_may_repeat_unless_they_must_be_unique() -> None:
    assert keys_said(SOUND) == []
    assert keys_said(SOUND, must_be_unique=True) == [
        (
            Level.FINDING,
            Check.KEYS,
            "t-0: 6 records with a key that was there before (the first at offset 1, the last at 9).",
        )
    ]


def test_doubled_records_and_keys_out_of_order_are_findings() -> None:
    found = SOUND._replace(
        moved=2,
        backwards=Seen(1, 5, 5),
        worst_back_ms=90_000,
        doubled=Seen(1, 8, 8),
        first_double=(1, 3),
        alike=4,
    )
    assert keys_said(found) == [
        (
            Level.FINDING,
            Check.DUPLICATES,
            "t-0: 1 record there once more, with the same key, value, headers and timestamp (offset 8; the "
            "one at offset 8 is that of t-1 at offset 3).",
        ),
        (
            Level.REMARK,
            Check.DUPLICATES,
            "t-0: 3 records with the key, value and headers of another one.",
        ),
        (
            Level.FINDING,
            Check.ORDER,
            "t-0: 1 record with a timestamp before that of the record before it of its key, by up to 1.5 min "
            "(offset 5).",
        ),
        (
            Level.REMARK,
            Check.KEYS,
            "t-0: 2 keys with records in another partition too: there is no order between these.",
        ),
    ]


def test_times_ahead_of_the_clock_partitions_behind_and_late_records_are_findings() -> None:
    assert [f.message for f in JUDGE.ahead(0, [block(0, [0], ahead=2), block(1, [1])], 3_600_000)] == [
        "t-0: 2 records with a timestamp more than 1 h from now."
    ]
    assert [f.message for f in JUDGE.skew({0: 10_000, 1: 4_000, 2: 9_000}, 5_000)] == [
        "t-1: its newest record is 6 s older than the newest of the topic: it holds watermarks back."
    ]
    assert JUDGE.late(Late(0, Seen(2, 4, 9), 7_500), 5_000).message == (
        "t-0: 2 records more than 5 s behind the newest one before it, up to 7.5 s (the first at offset 4, "
        "the last at 9)."
    )


def test_rows_with_one_offset_are_a_finding() -> None:
    [finding] = JUDGE.doubled_offsets(0, [block(0, [0, 1, 2]), block(1, [7, 8, 8])])
    assert (finding.check, finding.affected) == (Check.DUPLICATES, 1)
    assert finding.message == "t-0: 1 row with an offset that another row has (between offsets 7 and 8)."


def test_differences_say_which_side_lacks_what() -> None:
    found = [
        Difference(0, 5, 6, Seen(1, 3, 3), Seen(2, 4, 8), NONE, 9),
        Difference(1, 0, 0, NONE, NONE, NONE, 9),
    ]
    assert [f.message for f in JUDGE.differences(found, "the archive", "the topic")] == [
        "t-0: 1 record in the topic and not in the archive (offset 3).",
        "t-0: 2 records in the archive and not in the topic (the first at offset 4, the last at 8).",
    ]
