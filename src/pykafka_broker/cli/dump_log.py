"""`dump-log`: show the content of a log's files, as kafka-dump-log.sh prints it.

Differences on purpose: files are plain arguments, and a folder stands for all files in it; `--json` prints
an object a line; the exit status is 1 when something is wrong with a file; the first record of a segment is
not reported as if it followed offset -1; and secrets in the metadata log (redaction.py) are shown only with
`--show-secrets`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import click

from pykafka_broker.cli import progress
from pykafka_broker.cli.log_files import BATCH, UNKNOWN_FILE, Options, Problem, dump_file
from pykafka_broker.cli.options import gathered
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.record_json import DECODERS, Decoder, decode_metadata, redacted_metadata
from pykafka_broker.system.named_tuple import NamedTuple


class Decoding(NamedTuple):
    """How records are decoded: by the decoder of this name, with or without secrets."""

    decoder: str | None
    show_secrets: bool


def decoder_options(command: Any) -> Any:
    """At most one decoder, named as Apache Kafka names its options."""
    for name, records in (
        ("share-group-state", "__share_group_state"),
        ("transaction-log", "__transaction_state"),
        ("offsets", "__consumer_offsets"),
        ("cluster-metadata", "the metadata log"),
    ):
        command = click.option(
            f"--{name}-decoder", "decoder", flag_value=name, help=f"Decode the records of {records}."
        )(command)
    return command


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE…")
@click.option("--print-data-log", "data", is_flag=True, help="With the records, their keys and values.")
@click.option("--deep-iteration", "records", is_flag=True, help="With the records.")
@click.option("--skip-record-metadata", is_flag=True, help="Of the records only keys and values.")
@click.option("--max-bytes", type=click.IntRange(min=0), help="Stop after this many bytes of a log.")
@click.option("--verify-index-only", is_flag=True, help="Check indexes without printing them.")
@decoder_options
@click.option(
    "--show-secrets", is_flag=True, help="Keys of users and values of secrets in the metadata log too."
)
@gathered(Decoding, "decoding")
@json_option(None, streams=True)
def dump_log(
    paths: tuple[str, ...],
    data: bool,
    records: bool,
    skip_record_metadata: bool,
    max_bytes: int | None,
    verify_index_only: bool,
    decoding: Decoding,
    output: Output,
) -> int:
    """Show what is in log segments, indexes and snapshots.

    FILE is a .log, .index, .timeindex, .txnindex, .snapshot or .checkpoint file, or a folder of them.
    """
    options = Options(
        records=records or data or decoding.decoder is not None,
        data=data or decoding.decoder is not None,
        record_metadata=not skip_record_metadata,
        decoder=_decoder(decoding),
        metadata_decoder=None if decoding.show_secrets else redacted_metadata,
        max_bytes=max_bytes,
        entries=not verify_index_only,
    )
    problems: list[Problem] = []
    named = {part for entry in paths for part in entry.split(",")}
    files = expand(paths)
    how = progress.shown(results_come=True)
    with progress.progress("Dumping", how, total_bytes=sum(map(_log_bytes, files))) as telling:
        for path in files:
            if output.form is not Form.JSON:
                click.echo(f"Dumping {path}")
            try:
                for item in dump_file(path, options):
                    if isinstance(item, Problem):
                        problems.append(item)
                        continue
                    kind = item.value["kind"]
                    if kind == UNKNOWN_FILE and output.form is not Form.JSON:
                        output.note(item.text)
                    else:
                        output.show({"file": path, **item.value}, [item.text])
                    if kind == BATCH:
                        telling.advance(item.value["size"], item.value["count"])
            except FileNotFoundError:
                if path in named:
                    raise
                output.note(f"{path} has been removed meanwhile, as by a running broker")
    for line in problem_lines(problems):
        output.note(line)
    return 1 if problems else 0


def _decoder(decoding: Decoding) -> Decoder | None:
    name, show_secrets = decoding
    if name is None:
        return None
    return decode_metadata if name == "cluster-metadata" and show_secrets else DECODERS[name]


def _log_bytes(path: str) -> int:
    """The number of bytes of batches in a file; 0 for other files, which take no time."""
    with suppress(OSError):
        return os.path.getsize(path) if path.endswith(".log") else 0
    return 0


def expand(paths: Iterable[str]) -> list[str]:
    """The files that are meant: a folder stands for its files; a comma separates paths as in Kafka's tool."""
    files = []
    for path in (part for entry in paths for part in entry.split(",") if part):
        if os.path.isdir(path):
            files += [
                os.path.join(path, name)
                for name in sorted(os.listdir(path))
                if name.endswith((".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint"))
            ]
        else:
            files.append(path)
    return files


def problem_lines(problems: Iterable[Problem]) -> list[str]:
    """Problems below their headings."""
    by_heading: dict[str, list[str]] = {}
    for problem in problems:
        details = by_heading.setdefault(problem.heading, [])
        if problem.detail is not None:
            details.append(f"  {problem.detail}")
    return [line for heading, details in by_heading.items() for line in (heading, *details)]
