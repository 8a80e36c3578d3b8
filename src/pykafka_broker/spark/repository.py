"""Files of a Maven repository, by HTTP(S) or from a folder (`file:`), each checked with its SHA-1.

SHA-1 is what Maven Central has for every file. Proxies are taken from the environment, as urllib does.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.response import addinfourl

from pykafka_broker import __version__
from pykafka_broker.spark.errors import SparkError
from pykafka_broker.spark.releases import Coordinates

CENTRAL = "https://repo1.maven.org/maven2"
TIMEOUT_S = 60.0
#: The connector of Spark is 0.5 MB, Kafka's client 9 MB, Iceberg's runtime 50 MB.
MOST_BYTES = 1024**3
_PART_BYTES = 1024**2
SCHEMES = ("https://", "http://", "file:")


class NotInRepositoryError(SparkError):
    """The repository has no such file."""


class Repository:
    """A Maven repository at a URL."""

    def __init__(self, url: str = CENTRAL, timeout_s: float = TIMEOUT_S) -> None:
        """Raises SparkError: URLs of this kind are not supported."""
        if not url.startswith(SCHEMES):
            raise SparkError(f"{url!r} is no URL of a Maven repository: https://..., http://... or file:...")
        self.url = url.rstrip("/")
        self.timeout_s = timeout_s

    def pom(self, coordinates: Coordinates) -> str:
        """The POM of a jar.

        Raises:
            SparkError: it is not available.
        """
        path = f"{coordinates.stem}.pom"
        content = self._read(path)
        self._check(path, hashlib.sha1(content, usedforsecurity=False).hexdigest())
        return content.decode()

    def fetch(self, coordinates: Coordinates, folder: Path) -> bool:
        """Put a jar into the folder once it is complete and its checksum is right; False if it was there.

        Raises:
            SparkError: it is not available, or is damaged.
            OSError: it cannot be written.
        """
        path, target = f"{coordinates.stem}.jar", folder / coordinates.jar
        if target.exists():
            with target.open("rb") as file:
                digest = hashlib.file_digest(file, lambda: hashlib.sha1(usedforsecurity=False)).hexdigest()
            if digest == self._expected(path):
                return False
        unfinished = target.with_name(f"{target.name}.unfinished")
        hashed, size = hashlib.sha1(usedforsecurity=False), 0
        try:
            with self._open(path) as response, unfinished.open("wb") as file:
                while part := self._part(response, path):
                    size += len(part)
                    if size > MOST_BYTES:
                        raise SparkError(f"{self.url}/{path} is larger than {MOST_BYTES} bytes.")
                    hashed.update(part)
                    file.write(part)
            self._check(path, hashed.hexdigest())
            os.replace(unfinished, target)
        finally:
            unfinished.unlink(missing_ok=True)
        return True

    def _check(self, path: str, digest: str) -> None:
        expected = self._expected(path)
        if digest != expected:
            raise SparkError(
                f"{self.url}/{path} is damaged: its SHA-1 is {digest}, and should be {expected}. Try "
                "again; if it stays so, something between here and the repository changes files."
            )

    def _expected(self, path: str) -> str:
        content = self._read(f"{path}.sha1").decode("ascii", "replace").split()
        return content[0].lower() if content else ""

    def _read(self, path: str) -> bytes:
        with self._open(path) as response:
            return self._part(response, path)

    def _part(self, response: addinfourl, path: str) -> bytes:
        try:
            content: bytes = response.read(_PART_BYTES)
        except (OSError, HTTPException) as error:
            raise SparkError(f"{self.url}/{path} could not be read to its end: {error}.") from None
        return content

    def _open(self, path: str) -> addinfourl:
        where = f"{self.url}/{path}"
        request = urllib.request.Request(where, headers={"User-Agent": f"pykafka-broker/{__version__}"})
        try:
            opened: addinfourl = urllib.request.urlopen(request, timeout=self.timeout_s)
            return opened
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 410):
                raise self._missing(where) from None
            raise SparkError(f"{where}: the repository answers {error.code} {error.reason}.") from None
        except (urllib.error.URLError, OSError, HTTPException) as error:
            reason = error.reason if isinstance(error, urllib.error.URLError) else error
            if isinstance(reason, FileNotFoundError) or "No such file" in str(reason):
                raise self._missing(where) from None
            raise SparkError(
                f"{self.url} cannot be reached: {reason}. Behind a proxy, set https_proxy; where there is a "
                "mirror, name it:\n  pykafka-broker spark jars --repository URL --dest DIR"
            ) from None

    def _missing(self, where: str) -> NotInRepositoryError:
        return NotInRepositoryError(
            f"{self.url} does not have {where.rpartition('/')[2]}. A mirror that has it may be given:\n"
            "  pykafka-broker spark jars --repository URL --dest DIR\n"
            "A release of Spark without a connector there is best replaced by one that has it."
        )
