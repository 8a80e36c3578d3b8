"""`make proofs` runs each proof within its limit, and says what came out."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from interop.proofs import (
    OF_PYTEST,
    PROOFS,
    REPOSITORY,
    Outcome,
    Proof,
    closing_lines,
    page,
    proved_commit,
    run,
)

COMMIT = "0123456789"


def outcome_of(folder: Path, script: str, *, limit_minutes: float = 5, closing: str = OF_PYTEST) -> Outcome:
    (folder / "proof").write_text(script)
    return run(Proof("proof", "something", "sh proof", limit_minutes, closing), COMMIT, folder)


def test_a_proof_is_summed_up_by_its_closing_lines(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "echo ==== 3 passed in 1.20s ====; echo more")
    assert (outcome.commit, outcome.is_green, outcome.result) == (COMMIT, True, "3 passed")


def test_a_proof_that_fails_is_red(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "echo '== 1 failed, 2 passed in 61.00s (0:01:01) =='; exit 1")
    assert (outcome.is_green, outcome.result) == (False, "1 failed, 2 passed")
    outcome = outcome_of(tmp_path, "exit 2")
    assert (outcome.is_green, outcome.result) == (False, "ended with 2")


def test_a_proof_that_does_not_end_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, "sleep 600 & sleep 600", limit_minutes=0.001)
    assert (outcome.is_green, outcome.result) == (False, "not over after 0.001 minutes")


@pytest.mark.parametrize(
    ("name", "line", "told"),
    [
        (
            "simulate",
            "killed leader: 20 seeds from 0 on, 0 failed: 2.5 seeds/s, 81 events/s on 2 processors",
            "killed leader: 20 seeds from 0 on, 0 failed: 2.5 seeds/s",
        ),
        (
            "conformance",
            "9 of 10 conversations equal (1 differ), in 5 s",
            "9 of 10 conversations equal (1 differ)",
        ),
        ("interop", "0 failures", "0 failures"),
        ("fuzz", "9 hostile logins, 2 slow logins survived", "9 hostile logins, 2 slow logins survived"),
        ("fuzz", "=== 3 passed, 1 skipped in 61.00s (0:01:01) ===", "3 passed, 1 skipped"),
        ("reencode", "Apache Kafka agrees on all 5 encodings", "Apache Kafka agrees on all 5 encodings"),
    ],
)
def test_what_each_command_ends_with_is_found(name: str, line: str, told: str) -> None:
    [proof] = [proof for proof in PROOFS if proof.name == name]
    assert list(closing_lines(proof, ["something else\n", f"{line}\n"])) == [told]


def test_a_proof_is_of_the_last_commit_that_changed_more_than_pages_and_results(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        user = ("-c", "user.name=someone", "-c", "user.email=someone@localhost")
        return subprocess.run(
            ["git", *user, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    def commit(path: str) -> str:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
        git("add", ".")
        git("commit", "-q", "-m", path)
        return git("rev-parse", "--short=10", "HEAD")

    git("init", "-q")
    commit("src/code.py")
    tested = commit("tests/test_code.py")
    for path in (
        "docs/proofs.md",
        "interop/results/proofs.json",
        "interop/conformance/results/fetch.json",
        "CHANGELOG.md",
    ):
        commit(path)
    assert proved_commit(tmp_path) == tested


def test_the_page_has_a_row_for_each_and_each_is_a_target_of_make() -> None:
    outcomes = {"fuzz": Outcome(COMMIT, "2026-01-02", 3.2, False, "1 failed")}
    rows = [line for line in page(outcomes).splitlines() if line.startswith("| `make")]
    assert len(rows) == len(PROOFS)
    assert rows[-1].endswith(f"| {COMMIT} | 2026-01-02 | 3 min | **red**: 1 failed |")
    assert rows[0].endswith("| | | | not run yet |")
    assert len({proof.name for proof in PROOFS}) == len({proof.command for proof in PROOFS}) == len(PROOFS)
    makefile = (REPOSITORY / "Makefile").read_text()
    for proof in PROOFS:
        _, target, *variables = proof.command.split()
        [recipe] = [line for line in makefile.splitlines() if line.startswith(f"{target}: ")]
        assert all(f"$({variable.partition('=')[0]})" in recipe for variable in variables)
