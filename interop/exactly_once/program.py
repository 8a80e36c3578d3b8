"""A Java program that runs beside others: start it, see what it printed, kill it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Self

from pykafka_broker.testing.apache.jars import java

#: The test jars bring configurations of their own, of which one would be taken.
LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %m (%c)%n
"""
JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


class StoryError(AssertionError):
    """A program did not do what its story tells; the message holds the end of what it printed."""


class Program:
    """One JVM. What it prints goes to a file, its complaints too."""

    def __init__(
        self,
        name: str,
        folder: Path,
        jars: Sequence[Path],
        main_class: str,
        arguments: Sequence[str],
        *,
        level: str = "WARN",
    ) -> None:
        self.name = name
        self.log_file = folder / f"{name}.log"
        logging = folder / f"log4j2-{level.lower()}.properties"
        logging.write_text(LOGGING.format(level=level))
        class_path = os.pathsep.join(f"{jar}/*" for jar in jars)
        self._command = [
            *(java(), *JVM_OPTIONS, f"-Dlog4j2.configurationFile={logging}", f"-Djava.io.tmpdir={folder}"),
            *("-cp", class_path, main_class, *arguments),
        ]
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def start(self) -> Self:
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.starts += 1
        return self

    @property
    def status(self) -> int | None:
        """None while it runs."""
        assert self.process is not None, f"{self.name} was not started"
        return self.process.poll()

    def printed(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def pause(self) -> None:
        """SIGSTOP."""
        assert self.process is not None, f"{self.name} was not started"
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        assert self.process is not None, f"{self.name} was not started"
        self.process.send_signal(signal.SIGCONT)

    def ask_to_stop(self, patience_s: float = 90) -> int:
        """SIGTERM, and the status with which it ends."""
        assert self.process is not None, f"{self.name} was not started"
        self.process.terminate()
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise StoryError(f"{self.name} did not stop:\n{self.tail()}") from None

    def wait(self, patience_s: float) -> int:
        assert self.process is not None, f"{self.name} was not started"
        try:
            return self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise StoryError(f"{self.name} did not end in {patience_s:g} s:\n{self.tail()}") from None

    def wait_until_printed(self, text: str, patience_s: float = 120) -> None:
        until(
            lambda: text in self.printed() or self.status is not None, patience_s, f"{self.name} says {text}"
        )
        if text not in self.printed():
            raise StoryError(f"{self.name} ended with {self.status} before it said {text}:\n{self.tail()}")

    def tail(self, lines: int = 30) -> str:
        return "\n".join(self.printed().splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self if self.process else self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


def until(condition: Callable[[], bool], patience_s: float, what: str) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            raise StoryError(f"not in {patience_s:g} s: {what}")
        time.sleep(0.1)
