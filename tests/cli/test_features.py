"""`features`: the levels of features in kafka-features.sh's form, and changes of them."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run

KRAFT = (
    "Feature: kraft.version                             SupportedMinVersion: 0                "
    "SupportedMaxVersion: 1                FinalizedVersionLevel: 1                Epoch: "
)
METADATA = (
    "Feature: metadata.version                          SupportedMinVersion: 3.3-IV3          "
    "SupportedMaxVersion: 4.3-IV0          FinalizedVersionLevel: 4.3-IV0          Epoch: "
)


def test_levels_are_described_in_the_order_of_their_names(run: Run) -> None:
    lines = run("features", "describe").out.splitlines()

    assert lines == sorted(lines)
    assert [line.rstrip("0123456789") for line in lines if "kraft" in line or "metadata" in line] == [
        KRAFT,
        METADATA,
    ]


def test_a_level_is_lowered_and_raised_again(run: Run) -> None:
    lowered = run("features", "downgrade", "group.version=0")
    assert lowered.out == "group.version was downgraded to 0.\n"
    described = run("features", "describe").out
    assert "group.version" in described
    assert "FinalizedVersionLevel: 0" in next(
        line for line in described.splitlines() if "group.version" in line
    )
    raised = run("features", "upgrade", "group.version=1", "metadata.version=4.3-IV0")
    assert raised.out == "group.version was upgraded to 1.\nmetadata.version was upgraded to 30.\n"


def test_a_dry_run_changes_nothing(run: Run) -> None:
    tried = run("features", "downgrade", "--unsafe", "--dry-run", "transaction.version=1")
    assert tried.out == "transaction.version can be downgraded to 1.\n"
    assert run("features", "upgrade", "transaction.version=1", "--dry-run").status == 1


def test_a_refusal_tells_the_reason(run: Run) -> None:
    refused = run("features", "upgrade", "nonsense.version=1")

    assert (refused.status, refused.out) == (1, "")
    assert "Invalid update version 1 for feature nonsense.version." in refused.err


@pytest.mark.parametrize("level", ["group.version=one", "metadata.version=4.3", "group.version", "a=40000"])
def test_what_is_no_level_is_wrong_usage(run: Run, level: str) -> None:
    assert run("features", "upgrade", level).status == 2
