"""`users`: users with passwords."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def nothing_stays(run: Run) -> Iterator[None]:
    yield
    for one in json.loads(run("users", "list", "--json").out)["users"]:
        run("users", "delete", one["user"], "--mechanism", one["mechanism"])


@pytest.fixture
def password(tmp_path: Path) -> str:
    (tmp_path / "password").write_text("a password\nand what does not belong to it\n")
    return str(tmp_path / "password")


def test_a_user_is_set_listed_and_deleted(run: Run, password: str) -> None:
    done = "Completed updating config for user alice.\n"
    assert run("users", "set", "alice", "--password-file", password).out == done
    words = ("--mechanism", "scram-sha-256", "--iterations", "8192")
    assert run("users", "set", "alice", *words, "--password-file", password).out == done
    assert run("users", "list").out == (
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-256=iterations=8192\n"
        "SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-512=iterations=4096\n"
    )
    both = run("users", "list", "bob", "alice")
    assert both.out == run("users", "list").out
    missing = "Error: Attempt to describe a user credential that does not exist: bob\n"
    assert (both.status, both.err) == (1, missing)
    assert json.loads(run("users", "list", "bob", "--json").err)["code"] == "RESOURCE_NOT_FOUND"
    assert run("users", "delete", "alice").out == done
    assert "SHA-512" not in run("users", "list", "alice").out


def test_a_password_comes_from_standard_input(run: Run) -> None:
    assert run("users", "set", "alice", "--password-file", "-", stdin=b"secret\n").status == 0
    assert "alice" in run("users", "list").out


@pytest.mark.parametrize(
    ("words", "stdin", "status", "text"),
    [
        ((), b"", 2, "There is no terminal to ask for the password: --password-file"),
        (("--password-file", "-"), b"\n", 2, "The password is empty."),
        (("--password-file", "-", "--iterations", "100"), b"x\n", 1, "Too few iterations"),
    ],
)
def test_what_cannot_be_set_is_told(
    run: Run, words: tuple[str, ...], stdin: bytes, status: int, text: str
) -> None:
    refused = run("users", "set", "alice", *words, stdin=stdin)
    assert refused.status == status
    assert text in refused.err


def test_a_user_that_there_is_not_cannot_be_deleted(run: Run) -> None:
    refused = run("users", "delete", "nobody")
    assert refused.status == 1
    assert refused.err.startswith("Error: ")


def test_at_a_terminal_users_are_a_table(run: Run, password: str, terminal: Callable[[int], None]) -> None:
    run("users", "set", "alice", "--password-file", password)
    terminal(80)
    assert run("users", "list").out.split()[3:] == ["alice", "SCRAM-SHA-512", "4096"]
