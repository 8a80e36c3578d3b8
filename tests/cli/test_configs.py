"""`configs`: description in kafka-configs.sh's form, and changes."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Run


def test_a_topics_own_values_are_described_with_what_they_override(run: Run) -> None:
    run("topics", "create", "configured", "--config", "retention.ms=5000")
    changed = run("configs", "alter", "--topic", "configured", "--set", "segment.bytes=2000000")
    assert changed.out == "Completed updating config for topic configured.\n"
    assert run("configs", "describe", "--topic", "configured").out == (
        "Dynamic configs for topic configured are:\n"
        "  retention.ms=5000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5000}\n"
        "  segment.bytes=2000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=2000000, "
        "DEFAULT_CONFIG:log.segment.bytes=1073741824}\n"
    )


def test_all_values_are_described_if_asked_for(run: Run) -> None:
    run("topics", "create", "all-values")
    head, *entries = run("configs", "describe", "--topic", "all-values", "--all").out.splitlines()
    assert head == "All configs for topic all-values are:"
    assert len(entries) == 33
    assert entries == sorted(entries)


def test_a_key_goes_back_to_its_default(run: Run) -> None:
    run("topics", "create", "reverted", "--config", "retention.ms=5000")
    run("configs", "alter", "--topic", "reverted", "--delete", "retention.ms")
    assert (
        run("configs", "describe", "--topic", "reverted").out == "Dynamic configs for topic reverted are:\n"
    )


def test_lists_grow_and_shrink(run: Run) -> None:
    run("topics", "create", "policies")
    run("configs", "alter", "--topic", "policies", "--append", "cleanup.policy=compact")
    assert "cleanup.policy=delete,compact " in run("configs", "describe", "--topic", "policies").out
    run("configs", "alter", "--topic", "policies", "--subtract", "cleanup.policy=delete")
    assert "cleanup.policy=compact " in run("configs", "describe", "--topic", "policies").out


def test_a_broker_is_changed_while_it_runs(run: Run) -> None:
    run("configs", "alter", "--broker", "1", "--set", "log.cleaner.backoff.ms=5")
    assert "  log.cleaner.backoff.ms=5 sensitive=false" in run("configs", "describe", "--broker", "1").out
    run("configs", "alter", "--broker", "1", "--delete", "log.cleaner.backoff.ms")
    assert run("configs", "describe", "--broker", "1").out == "Dynamic configs for broker 1 are:\n"


def test_all_brokers_have_common_defaults(run: Run) -> None:
    changed = run("configs", "alter", "--broker-defaults", "--set", "log.cleaner.backoff.ms=6")
    assert changed.out == "Completed updating default config for brokers in the cluster.\n"
    described = run("configs", "describe", "--broker-defaults").out
    assert described.startswith("Default configs for brokers in the cluster are:\n")
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.backoff.ms=6" in described
    run("configs", "alter", "--broker-defaults", "--delete", "log.cleaner.backoff.ms")


def test_a_refused_value_changes_nothing(run: Run) -> None:
    run("topics", "create", "steady")
    result = run("configs", "alter", "--topic", "steady", "--set", "retention.ms=-2")
    reason = "Invalid value -2 for configuration retention.ms: Value must be at least -1"
    assert result == (1, "", f"Error: {reason}\n")
    assert run("configs", "describe", "--topic", "steady").out == "Dynamic configs for topic steady are:\n"


def test_a_dry_run_only_asks(run: Run) -> None:
    run("topics", "create", "dry")
    result = run("configs", "alter", "--topic", "dry", "--set", "retention.ms=5", "--dry-run")
    assert result.out == "The change of topic dry would be accepted.\n"
    assert run("configs", "describe", "--topic", "dry").out == "Dynamic configs for topic dry are:\n"


def test_keys_are_documented_if_asked_for(run: Run) -> None:
    out = run("configs", "describe", "--broker", "1", "--all", "--documentation").out
    assert "    Partitions of a topic that is created without a partition count.\n" in out


@pytest.mark.parametrize("options", [[], ["--topic", "a", "--broker", "1"]], ids=["none", "two"])
def test_exactly_one_resource_must_be_named(run: Run, options: list[str]) -> None:
    result = run("configs", "describe", *options)
    assert result.status == 2
    assert "Name one of --topic" in result.err


def test_a_change_must_change_something(run: Run) -> None:
    assert run("configs", "alter", "--topic", "a").status == 2


def test_a_topic_that_is_not_there_has_no_configs(run: Run) -> None:
    assert run("configs", "describe", "--topic", "gone").err == "Error: Topic 'gone' does not exist.\n"
