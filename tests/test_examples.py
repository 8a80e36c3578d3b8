"""The examples without Spark print what their comments say. `make test` runs examples/test_*.py itself."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator

import pytest

from pykafka_broker import Broker, load_config
from tests.support.pages import REPOSITORY, shown_output

#: With consumers of librdkafka, which take more than a second to begin.
LONGER = ("consumer_group", "transactions")
NAMES = ("with_aiokafka", *(pytest.param(name, marks=pytest.mark.slow) for name in LONGER))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Broker(load_config(data_dir=tmp_path_factory.mktemp("data"), listen="127.0.0.1:0")) as broker:
        yield broker.bootstrap_servers


def check(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> None:
    program = REPOSITORY / "examples" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    runpy.run_path(str(program), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == shown_output(program.read_text())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_comments_say(
    name: str, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check(name, capsys, monkeypatch, address)


@pytest.mark.slow
def test_no_record_is_lost_when_each_node_of_the_example_is_killed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check("cluster", capsys, monkeypatch)
