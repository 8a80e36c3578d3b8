"""Disk space kept for a start on a full disk.

A start writes some hundred bytes of metadata: votes, the leader, the broker's registration. On a full disk a
killed broker could not start again, not even to serve reads. A file in the metadata directory keeps that
space: the file is removed before a start that finds too little space, and made again when the start has
written its metadata, before any producer can take the space.

Its content is random, because some file systems store zeros without using space.
"""

from __future__ import annotations

import logging
from os import urandom

from pykafka_broker.log.disk.files import FileSystem, join, write_fully
from pykafka_broker.log.disk.full_disks import REFUSALS

logger = logging.getLogger("kafka.server.SharedServer")

RESERVE_FILE = ".reserve"
#: Enough for dozens of starts: each needs some KiB, rounded up to file system blocks.
RESERVE_BYTES = 256 * 1024
#: The reserve is made only if the disk has at least this many times its size free.
ROOMY = 16


class StartReserve:
    """The file that keeps space in one directory. All methods block.

    Errors of the reserve are only logged: if the disk has failed, other writes fail too.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._path = join(directory, RESERVE_FILE)
        #: Whether the file is smaller than it should be, or missing.
        self.is_short = True
        self._is_given = False

    def give_if_needed(self) -> None:
        """Remove the file for this start, if less than its size is free."""
        try:
            if self._free_bytes() < RESERVE_BYTES:
                self._files.remove(self._path)
                self._is_given = True
        except OSError as error:
            logger.warning("The room kept in %s for a start cannot be had: %s", self._directory, error)

    def take_back(self) -> None:
        """Make the file again if this start has removed it, otherwise only if the disk has enough space."""
        is_given, self._is_given = self._is_given, False
        try:
            if is_given:
                self._hold()
            else:
                self._hold_if_roomy()
        except OSError as error:
            logger.debug("No room is kept for the next start: %s", error)

    def _hold_if_roomy(self) -> None:
        self.is_short = self._held_bytes() < RESERVE_BYTES
        if self.is_short and self._free_bytes() >= ROOMY * RESERVE_BYTES:
            self._hold()

    def _hold(self) -> None:
        """Fill the file up to its full size, as far as the disk has space."""
        held_bytes = self._held_bytes()
        try:
            file = self._files.open(self._path, create=not self._files.exists(self._path))
            try:
                write_fully(file, urandom(RESERVE_BYTES - held_bytes), held_bytes)
            finally:
                file.close()
        except OSError as error:
            if error.errno not in REFUSALS:
                raise
            logger.debug("%s is smaller than it should be: %s", self._path, error)
        self.is_short = self._held_bytes() < RESERVE_BYTES

    def _held_bytes(self) -> int:
        if not self._files.exists(self._path):
            return 0
        file = self._files.open(self._path, writable=False)
        try:
            return min(file.size(), RESERVE_BYTES)
        finally:
            file.close()

    def _free_bytes(self) -> int:
        return self._files.space(self._directory)[1]
