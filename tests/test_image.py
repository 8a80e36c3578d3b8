"""The image's start script passes on what the user configured, as the apache/kafka image does.

There is no container here: the script runs with a `pykafka-broker` that only says how it was called.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent.parent / "docker" / "run"
SAYS = '#!/bin/bash\necho "$@"\necho "listeners=$KAFKA_LISTENERS advertised=$KAFKA_ADVERTISED_LISTENERS"\n'


def started_with(folder: Path, **variables: str) -> list[str]:
    """The arguments and listeners the broker would start with."""
    program = folder / "pykafka-broker"
    program.write_text(SAYS)
    program.chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", str(RUN)],
        env={"PATH": f"{folder}:/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_without_configuration_clients_on_the_host_find_the_mapped_port(tmp_path: Path) -> None:
    assert started_with(tmp_path) == [
        "start --data-dir /var/lib/kafka/data",
        "listeners=PLAINTEXT://:9092 advertised=PLAINTEXT://localhost:9092",
    ]


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("KAFKA_LISTENERS", "listeners=PLAINTEXT://:9699 advertised="),
        ("KAFKA_ADVERTISED_LISTENERS", "listeners= advertised=PLAINTEXT://:9699"),
        ("KAFKA_CFG_LISTENERS", "listeners= advertised="),
        ("KAFKA_CFG_ADVERTISED_LISTENERS", "listeners= advertised="),
    ],
)
def test_listeners_that_the_user_sets_are_left_alone(tmp_path: Path, variable: str, told: str) -> None:
    assert started_with(tmp_path, **{variable: "PLAINTEXT://:9699"})[1] == told


@pytest.mark.parametrize("variable", ["KAFKA_LOG_DIRS", "KAFKA_LOG_DIR", "KAFKA_CFG_LOG_DIRS"])
def test_a_data_folder_that_the_user_names_is_not_overridden(tmp_path: Path, variable: str) -> None:
    assert started_with(tmp_path, **{variable: "/elsewhere"})[0] == "start"


def test_data_is_kept_in_the_volume_of_a_bitnami_container(tmp_path: Path) -> None:
    volume = tmp_path / "bitnami"
    volume.mkdir()
    assert started_with(tmp_path, KAFKA_VOLUME_DIR=str(volume))[0] == f"start --data-dir {volume}/data"
