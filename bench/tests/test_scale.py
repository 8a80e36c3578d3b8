"""One node and two on one host, under the same load."""

from __future__ import annotations

import pytest

from bench.scale import load_host


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_load_reaches_all_nodes_of_the_host(nodes: int) -> None:
    figures = load_host("ours", nodes, 0.02)

    assert figures.keys() == {"acks_per_s", "acks_p99_ms", "mb_s", "s_per_gb", "memory_mb"}
    assert all(value > 0 for value in figures.values())
