"""Apache Kafka's command-line tools, each run in a JVM of its own."""

from __future__ import annotations

import subprocess

from pykafka_broker.testing.apache.jars import VERSION, class_archive, java, libs

#: The options of short-lived processes, which gain nothing from an optimising compiler or a parallel
#: collector.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class ToolError(Exception):
    """A Java tool ended with a non-zero status; the message holds its output."""


def command(
    main_class: str, *arguments: str, jvm_options: tuple[str, ...] = (), version: str = VERSION
) -> list[str]:
    """The command line of a main class of Kafka, or of a Java program that needs its jars.

    A short-lived process maps the archive of Kafka's classes, once there is one.
    """
    shared: tuple[str, ...] = ()
    if version == VERSION and set(SHORT_LIVED) <= set(jvm_options) and class_archive().exists():
        shared = (f"-XX:SharedArchiveFile={class_archive()}",)
    return [java(), *shared, *jvm_options, "-cp", f"{libs(version).resolve()}/*", main_class, *arguments]


def run_tool(
    main_class: str,
    *arguments: str,
    stdin: str = "",
    timeout_s: float = 120,
    expect_failure: bool = False,
    version: str = VERSION,
) -> str:
    """Run one of Kafka's tools and return its output on stdout; of one that fails, that on stderr as well.

    Raises ToolError where the tool fails, or does not fail although `expect_failure`.
    """
    options = (*SHORT_LIVED, "-Dlog4j2.level=WARN")
    done = subprocess.run(
        command(main_class, *arguments, jvm_options=options, version=version),
        input=stdin.encode(),
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    printed = done.stdout.decode(errors="replace")
    if done.returncode:
        printed += done.stderr.decode(errors="replace")
    if (done.returncode != 0) != expect_failure:
        raise ToolError(f"{main_class} ended with {done.returncode}:\n{printed}")
    return printed
