"""The commands and programs of docs/arrow.md do what the page says, one after the other."""

from __future__ import annotations

import sys
from pathlib import Path

from pykafka_broker.testing.processes import PykafkaBroker
from tests.support.pages import ADDRESS, blocks, commands, run, shown_output

PAGE = "docs/arrow.md"
#: Installs.
NOT_TYPED = "python3 -m pip "


def test_the_page_is_right_from_its_top_to_its_end(tmp_path: Path) -> None:
    with PykafkaBroker(folder=tmp_path / "broker") as broker:
        (tmp_path / "pykafka-data").symlink_to(broker.data_dir)
        for session in blocks(PAGE, "console"):
            for command in commands(session):
                if not command.line.startswith(NOT_TYPED):
                    run(command.line, broker.address, tmp_path)
        programs = blocks(PAGE, "python")
        assert programs
        for program in programs:
            at_broker = program.replace(ADDRESS, broker.address)
            printed = run([sys.executable, "-c", at_broker], broker.address, tmp_path).splitlines()
            shown = shown_output(program)
            assert printed == (shown * len(printed) if len(shown) == 1 else shown)
