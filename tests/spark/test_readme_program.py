"""The README's Spark program, run as printed, at another address."""

from __future__ import annotations

import sys
from pathlib import Path

from pykafka_broker.testing.cache import CACHE
from tests.spark.conftest import Broker
from tests.support.pages import ADDRESS, PROGRAMS, run, shown_output


def test_the_readme_s_spark_program_reads_what_it_wrote(broker: Broker, tmp_path: Path) -> None:
    [program] = [program for program in PROGRAMS if "pyspark" in program]
    # Where Spark keeps its connector is the only other thing that is not as printed: not in the home folder.
    at_broker = program.replace(ADDRESS, broker.address).replace(
        ".getOrCreate()", f".config('spark.jars.ivy', {str(CACHE / 'ivy')!r}).getOrCreate()"
    )
    printed = run([sys.executable, "-c", at_broker], broker.address, tmp_path)
    assert printed.splitlines() == shown_output(program)
