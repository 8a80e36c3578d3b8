"""The table of three nodes in bench/README.md tells what was measured."""

from __future__ import annotations

from interop.bench_page import cluster


def test_a_figure_has_three_digits_and_one_that_was_not_measured_no_row() -> None:
    apache = {"cluster_produce.mb_s": 74.42775, "cluster_client.kill_s": 10.0649}
    ours = {"cluster_produce.mb_s": 1220.4, "cluster_move.seconds": 0.030242, "cluster_client.kill_s": 2.0081}
    ours |= {"cluster_client.restart_s": 0.1469}

    head, _, *rows = cluster(
        {"file": "DAY-cluster.json", "values": {"apache": apache, "ours": ours}}
    ).splitlines()

    assert head == "| `results/DAY-cluster.json` | Apache Kafka | ours |"
    assert [row.split(" | ")[1:] for row in rows] == [
        ["", "0.0302 s |"],
        ["10.1 s", "2.01 s; 0.147 s |"],
        ["74.4 MB/s", "1,220 MB/s |"],
    ]


def test_the_p99_of_bulk_is_shown_where_it_was_measured() -> None:
    table = cluster({"file": "DAY-cluster.json", "values": {"ours": {"cluster_produce.bulk_p99_ms": 41.26}}})

    assert table.splitlines()[2:] == ["| p99 of its requests | 41.3 ms |"]
