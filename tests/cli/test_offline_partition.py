"""Commands about a topic of which one of two partitions has no leader: they go on with the other one."""

from __future__ import annotations

from pykafka_broker.cli.share_group_state import set_start_offsets, start_offsets
from pykafka_broker.client.blocking import Client
from tests.cli.conftest import Result, run_command
from tests.support.offline_partition import GROUP, TOPIC, half_offline


def test_the_other_partition_is_read_written_and_described() -> None:
    with half_offline() as half:
        led = str(half.led)

        def run(*words: str, timeout: str = "30") -> Result:
            return run_command(*words, "-b", half.address, "--timeout", timeout)

        for acks in ("all", "1"):
            assert run("produce", TOPIC, f"any {acks}", "--acks", acks).status == 0
            assert run("produce", TOPIC, f"that {acks}", "--acks", acks, "-p", led).status == 0
        read = run("consume", TOPIC, "-p", led, "--until", "end").out.splitlines()
        assert read == ["one", "two", "any all", "that all", "any 1", "that 1"]

        lines = run("groups", "describe", GROUP).out.splitlines()
        rows = {row[2]: row[3:6] for row in map(str.split, lines) if row and row[0] == GROUP}
        assert rows == {led: ["1", "6", "5"], str(half.offline): ["1", "-", "-"]}
        with Client(half.address) as client:
            set_start_offsets(client, "sharers", {(TOPIC, 0): 1, (TOPIC, 1): 1})
            shared = {
                each.partition: (each.start_offset, each.lag) for each in start_offsets(client, "sharers")
            }
        assert shared == {half.led: (1, 5), half.offline: (None, None)}
        moved = ("groups", "reset-offsets", GROUP, "--to-latest", "--execute", "--topic")
        assert run(*moved, f"{TOPIC}:{led}").status == 0
        assert run("topics", "profile", TOPIC, "-p", led).status == 0

        refused = run("consume", TOPIC, "--until", "end", timeout="1")
        assert refused.status == 1
        assert refused.err.startswith(f"Error: {TOPIC}-{half.offline}: ")
