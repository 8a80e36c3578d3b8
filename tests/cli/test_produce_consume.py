"""`produce` and `consume`: what goes in comes out, from where and until where one says."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable

import pytest

from pykafka_broker.cli import progress
from pykafka_broker.cli.consume.reader import Reader
from pykafka_broker.cli.consume.share import ShareReader
from pykafka_broker.client.blocking import Client
from pykafka_broker.client.core.share_group import Acknowledgement
from pykafka_broker.protocol.errors import KafkaError
from tests.cli.conftest import Run

TIME = "2026-01-02T03:04:05+00:00"
TIME_MS = 1767323045000


def topic(run: Run, name: str, partitions: int = 1) -> str:
    assert run("topics", "create", name, "-p", str(partitions)).status == 0
    return name


def test_lines_of_standard_input_are_records(run: Run) -> None:
    name = topic(run, "lines")
    assert run("produce", name, stdin=b"one\ntwo\r\n\nlast").status == 0
    result = run("consume", name, "--until", "end")
    assert result == (0, "one\ntwo\n\nlast\n", "Processed a total of 4 messages\n")


def test_every_part_of_a_record_survives(run: Run) -> None:
    name = topic(run, "parts")
    run("produce", name, "-k", "k1", "-H", "trace=7", "-H", "empty=", "-t", TIME, "v1")
    out = run("consume", name, "-u", "end", "--print", "all").out
    assert out == f"CreateTime:{TIME_MS}\tPartition:0\tOffset:0\ttrace:7,empty:\tk1\tv1\n"


def test_chosen_parts_are_printed_in_the_console_consumers_order(run: Run) -> None:
    name = topic(run, "chosen")
    run("produce", name, "-k", "k", "v")
    assert run("consume", name, "-u", "end", "--print", "value,key,offset").out == "Offset:0\tk\tv\n"
    assert (
        run("consume", name, "-u", "end", "--print", "headers", "--key-separator", "|").out == "NO_HEADERS\n"
    )
    assert run("consume", name, "--print", "colour").status == 2


def test_nulls_go_in_and_come_out_as_what_one_likes(run: Run) -> None:
    name = topic(run, "nulls")
    run("produce", name, "--null-marker", "NIL", "-K", ":", "k:NIL", "NIL:v")
    assert run("consume", name, "-u", "end", "--print", "key,value").out == "k\tnull\nnull\tv\n"
    out = run("consume", name, "-u", "end", "--print", "key,value", "--null-marker", "-").out
    assert out == "k\t-\n-\tv\n"


def test_a_record_as_json_has_all_parts(run: Run) -> None:
    name = topic(run, "json")
    run("produce", name, "-k", "k", "-H", "h=x", "-t", TIME, "é")
    assert json.loads(run("consume", name, "-u", "end", "--json").out) == {
        "topic": name,
        "partition": 0,
        "offset": 0,
        "timestamp": TIME_MS,
        "timestamp_type": "CreateTime",
        "headers": [{"key": "h", "value": "x"}],
        "key": "k",
        "value": "é",
    }


def test_bytes_that_are_no_text_are_base64_in_json(run: Run) -> None:
    name = topic(run, "bytes")
    run("produce", name, stdin=b"\xff\xfe")
    shown = json.loads(run("consume", name, "-u", "end", "--json").out)
    assert shown["value_base64"] == "//4="
    assert shown["key"] is None


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_can_be_written_and_read(run: Run, codec: str) -> None:
    name = topic(run, f"codec-{codec}")
    lines = "".join(f"line {i}\n" for i in range(2000))
    assert run("produce", name, "-z", codec, stdin=lines.encode()).status == 0
    assert run("consume", name, "-u", "end").out == lines


def test_equal_keys_go_to_one_partition_the_one_of_the_java_client(run: Run) -> None:
    name = topic(run, "keyed", partitions=3)
    assert run("produce", name, "-v", "-k", "foobar", "a", "b").out == "Partition:0\tOffset:0-1\n"
    assert run("produce", name, "-v", "-k", "foobar", "c").out == "Partition:0\tOffset:2-2\n"


def test_a_partition_may_be_chosen_if_it_exists(run: Run) -> None:
    name = topic(run, "placed", partitions=3)
    assert run("produce", name, "-v", "-p", "2", "x").out == "Partition:2\tOffset:0-0\n"
    assert (
        run("consume", name, "-p", "2", "-u", "end", "--print", "partition,value").out == "Partition:2\tx\n"
    )
    refused = (1, "", "Error: Topic 'placed' has no partition 3.\n")
    assert run("produce", name, "-p", "3", "x") == refused
    assert run("consume", name, "-p", "3") == refused


def test_without_acks_nothing_is_known_of_offsets(run: Run) -> None:
    name = topic(run, "unacknowledged")
    assert run("produce", name, "-v", "--acks", "0", "x").out == "Partition:0\tOffset:-1--1\n"


def test_a_line_without_its_separator_is_refused(run: Run) -> None:
    name = topic(run, "separated")
    result = run("produce", name, "-K", ":", "no separator")
    assert result == (1, "", "Error: No key separator found in line 'no separator'\n")


def test_what_stands_before_a_line_that_is_refused_is_written(run: Run) -> None:
    name = topic(run, "before")
    assert run("produce", name, "-K", ":", stdin=b"a:1\nb:2\nbad\nc:3\n").status == 1
    assert run("consume", name, "-u", "end").out == "1\n2\n"


def test_a_header_may_come_several_times(run: Run) -> None:
    name = topic(run, "headers")
    run("produce", name, "-H", "h=1", "-H", "h=2", "v")
    assert run("consume", name, "-u", "end", "--print", "headers").out == "h:1,h:2\n"


def test_a_topic_is_created_by_writing_to_it(run: Run) -> None:
    assert run("produce", "made-by-writing", "x").status == 0
    assert run("consume", "made-by-writing", "-u", "end").out == "x\n"


def test_reading_starts_and_stops_where_one_says(run: Run) -> None:
    name = topic(run, "ranges")
    for i in range(5):
        run("produce", name, "-t", str(TIME_MS + i * 1000), str(i))

    def read(*where: str) -> str:
        return "".join(run("consume", name, *where).out.split())

    assert read("--from", "beginning", "--until", "end") == "01234"
    assert read("--from", "2", "--until", "4") == "23"
    assert read("--from", "-2", "--until", "end") == "34"
    assert read("--from", f"@{TIME_MS + 3000}", "--until", "end") == "34"
    assert read("--from", f"@{TIME}", "--until", f"@{TIME_MS + 1500}") == "01"
    assert read("--from", "end", "--until", "end") == ""
    assert read("--from", "@2100-01-01", "--until", "end") == ""
    assert read("--max-messages", "2") == "01"
    assert read("--from", "4", "--idle", "0.1") == "4"


def test_a_place_that_is_none_is_wrong_usage(run: Run) -> None:
    name = topic(run, "places")
    result = run("consume", name, "--from", "somewhere")
    assert result.status == 2
    assert "'somewhere' is none of beginning, end, an offset, -N and @TIME" in result.err


def test_an_offset_out_of_range_is_an_error(run: Run) -> None:
    name = topic(run, "out-of-range")
    result = run("consume", name, "--from", "7")
    assert result.status == 1
    assert result.err == "Processed a total of 0 messages\nError: out-of-range-0 has no offset 7.\n"


def test_a_group_goes_on_where_it_stopped(run: Run) -> None:
    name = topic(run, "grouped")
    run("produce", name, "a", "b", "c")
    assert run("consume", name, "-g", "readers", "-n", "2").out == "a\nb\n"
    assert run("consume", name, "-g", "readers", "-u", "end").out == "c\n"
    assert run("consume", name, "-g", "readers", "-u", "end").out == ""


Reads = Callable[[Client, str], Reader | ShareReader]


def read_alone(client: Client, name: str) -> Reader:
    return Reader(client, name, {0: 0})


def read_as_member(client: Client, name: str) -> ShareReader:
    return ShareReader(client, name, "sharers", Acknowledgement.ACCEPT)


@pytest.mark.parametrize("reads", [read_alone, read_as_member])
@pytest.mark.parametrize("again", [True, False], ids=["created again", "gone"])
def test_who_reads_a_topic_is_told_that_it_was_deleted(
    run: Run, broker: str, reads: Reads, *, again: bool
) -> None:
    name = topic(run, f"brief-{reads.__name__}-{again}")
    told = (
        f"Topic '{name}' was deleted and created again while"
        if again
        else f"Topic '{name}' was deleted while"
    )
    with Client(broker) as client:
        reader = reads(client, name)
        list(reader.poll())
        assert run("topics", "delete", name).status == 0
        if again:
            topic(run, name)

        with pytest.raises(KafkaError, match=told):
            for _ in range(200):
                list(reader.poll())

    # Else the old offsets would be committed for the new topic.
    assert not isinstance(reader, Reader) or reader.positions == {}


def test_arguments_need_not_be_text(run: Run) -> None:
    name = topic(run, "arguments")
    header = ("-H", "head\udcff=h\udcfe")
    assert run("produce", name, "v\udcff", "-k", "k\udcfe", *header).status == 0
    [shown] = run("consume", name, "--json", "-u", "end").out.splitlines()
    record = json.loads(shown)
    assert base64.b64decode(record["value_base64"]) == b"v\xff"
    assert base64.b64decode(record["key_base64"]) == b"k\xfe"
    assert record["headers"] == [{"key": "head\ufffd", "value_base64": base64.b64encode(b"h\xfe").decode()}]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["produce", "-t", f"{1 << 63}", "{}", "v"], f"{1 << 63} is larger than {(1 << 63) - 1}"),
        (["produce", "-t", "1969-12-31T23:59:59Z", "{}", "v"], "'1969-12-31T23:59:59Z' is before 1970"),
        (["produce", "-t", "0001-01-01T00:00:00+14:00", "{}", "v"], "'0001-01-01T00:00:00+14:00' is"),
        (["consume", "{}", "--from", f"@{1 << 63}"], f"{1 << 63} is larger than {(1 << 63) - 1}"),
        (["consume", "{}", "--from", "9" * 5000], "is larger than"),
        (["consume", "{}", "--from", f"-{1 << 63}"], f"{1 << 63} is larger than {(1 << 63) - 1}"),
    ],
)
def test_times_and_offsets_that_cannot_be_are_wrong_usage(
    run: Run, arguments: list[str], complaint: str
) -> None:
    assert run("topics", "create", "limits", "--if-not-exists").status == 0
    result = run(*(argument.format("limits") for argument in arguments))
    assert result.status == 2
    assert complaint in result.err.splitlines()[-1]


def test_progress_is_told_in_lines_where_there_is_no_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = topic(run, "progress")
    monkeypatch.setattr(progress, "LINE_INTERVAL_S", 0)
    told = rf"({name}: 3 records, \d+/s, {{}} B, [\d.]+ k?B/s\n){{{{2}}}}"
    written = run("produce", name, "--progress", stdin=b"a\nb\nc\n")
    assert (written.status, written.out) == (0, "")
    assert re.fullmatch(told.format(6), written.err)
    read = run("consume", name, "--until", "end", "--progress")
    assert read.out == "a\nb\nc\n"
    assert re.fullmatch(told.format(r"\d+") + "Processed a total of 3 messages\n", read.err)


def test_a_person_is_told_how_many_records_are_written(run: Run, terminal: Callable[[int], None]) -> None:
    name = topic(run, "told")
    terminal(80)
    assert run("produce", name, "a", "b") == (0, f"2 records written to {name}.\n", "")
    assert run("produce", name, "--acks", "0", "c").out == f"1 record sent to {name}.\n"


def test_a_terminal_is_shown_how_far_a_read_into_a_file_has_come(
    run: Run, monkeypatch: pytest.MonkeyPatch, terminal: Callable[..., None]
) -> None:
    name = topic(run, "bar")
    run("produce", name, stdin=b"a\nb\nc\n")
    terminal(100, output_too=False)
    monkeypatch.setattr(progress, "SHOWN_AFTER_S", 0)
    result = run("consume", name, "--until", "end")
    assert result.out == "a\nb\nc\n"
    assert re.search(rf"{name} ━+ .* 3 records, ", result.err)
