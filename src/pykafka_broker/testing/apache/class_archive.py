"""An archive of the classes that a broker of Apache Kafka loads, made once (Java's class data sharing).

A JVM that maps it needs half the processor time to start a broker: most of a start is reading and checking
classes. `tools.py` gives it to all short-lived processes; no measurement of Kafka uses it.
"""

from __future__ import annotations

from pykafka_broker.testing.apache.broker import ApacheBroker
from pykafka_broker.testing.apache.jars import alone, class_archive
from pykafka_broker.testing.apache.tools import SHORT_LIVED
from pykafka_broker.testing.cache import CACHE


def make_class_archive() -> None:
    """Make the archive if there is none: start a broker and stop it. Takes some seconds."""
    archive = class_archive()
    with alone(CACHE / "classes.lock"):
        if archive.exists():
            return
        unfinished = archive.with_suffix(".unfinished")
        broker = ApacheBroker()
        broker.jvm_options = (*SHORT_LIVED, f"-XX:ArchiveClassesAtExit={unfinished}")
        with broker:
            broker.stop()
        if unfinished.exists():  # not every build of Java can make one
            unfinished.rename(archive)
