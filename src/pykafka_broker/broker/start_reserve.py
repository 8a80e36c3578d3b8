"""Room for a start on a disk that is full.

To start, a node writes some hundred bytes of metadata: who votes, who leads, that the broker is here again.
Where the disk has no byte left, a broker that was killed could not come back, not even to be read from. A
file in the metadata directory keeps that room: it is removed before a start that finds too little, and made
again when the start has written its metadata, before any producer can take the room.

Its content is random, because some file systems store zeros in no space at all.
"""

from __future__ import annotations

import logging
from os import urandom

from pykafka_broker.log.disk.files import FileSystem, join, write_fully
from pykafka_broker.log.disk.full_disks import REFUSALS

logger = logging.getLogger(__name__)

RESERVE_FILE = ".reserve"
#: A start takes some KiB of it, rounded up to the blocks of the file system: enough for dozens of starts.
RESERVE_BYTES = 256 * 1024
#: The reserve is made only if the disk has at least this many times its size free.
ROOMY = 16


class StartReserve:
    """The file that keeps room in one directory. Everything here is blocking.

    A reserve that cannot be had is no reason to fail: if something is wrong with the disk, other writes tell.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._path = join(directory, RESERVE_FILE)
        #: Smaller than it should be, or missing.
        self.is_short = True
        self._is_given = False

    def give_if_needed(self) -> None:
        """Let the start have the room, if there is too little beside it."""
        try:
            if self._free_bytes() < RESERVE_BYTES:
                self._files.remove(self._path)
                self._is_given = True
        except OSError as error:
            logger.warning("The room kept in %s for a start cannot be had: %s", self._directory, error)

    def take_back(self) -> None:
        """Keep room for the next start: the room that this one was given, or any if the disk has plenty."""
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
        """Keep the room, or as much of it as there is."""
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
