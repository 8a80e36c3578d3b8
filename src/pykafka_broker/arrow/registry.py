"""A registry of schemas, Confluent's or one that answers like it, over HTTP; each schema is fetched once.

GET /schemas/ids/<id>                         a schema by its id
GET /subjects/<subject>/versions/latest       the newest one of a subject, or by its version
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from pykafka_broker.system.named_tuple import NamedTuple

ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
#: The greatest depth of schemas that refer to others.
DEEPEST_REFERENCE = 32
_NOT_FOUND, _UNPROCESSABLE = 404, 422


class RegistrySchema(NamedTuple):
    """A schema as the registry has it."""

    #: For errors: its id, or its subject.
    name: str
    #: AVRO, PROTOBUF, JSON.
    kind: str
    text: str
    #: Subject and version of those that it refers to.
    references: tuple[tuple[str, int], ...]
    #: Its id, where the registry tells it.
    number: int | None = None


class Registry:
    """The registry at a URL."""

    __slots__ = ("_headers", "_known", "_timeout_s", "_url")

    def __init__(self, url: str, headers: Mapping[str, str], timeout_s: float) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no URL of a registry")
        self._headers = {"Accept": ACCEPT, **headers}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/"))
        self._url = urlunsplit(bare)
        self._timeout_s = timeout_s
        self._known: dict[str, RegistrySchema] = {}

    def schema(self, number: int) -> RegistrySchema:
        """The schema with an id.

        Raises:
            ValueError: there is none.
            ConnectionError: the registry does not answer.
        """
        return self._get(f"/schemas/ids/{number}", str(number))

    def newest(self, subject: str) -> RegistrySchema:
        """The newest schema of a subject; raises what `schema` raises."""
        return self._get(f"/subjects/{quote(subject, safe='')}/versions/latest", subject)

    def references(self, schema: RegistrySchema, depth: int = 0) -> Iterator[RegistrySchema]:
        """The schemas that one refers to, each after those that it refers to itself."""
        if depth > DEEPEST_REFERENCE:
            raise ValueError(f"schema {schema.name} of the registry refers to too many others")
        for subject, version in schema.references:
            found = self._get(f"/subjects/{quote(subject, safe='')}/versions/{version}", subject)
            yield from self.references(found, depth + 1)
            yield found

    def _get(self, path: str, name: str) -> RegistrySchema:
        known = self._known.get(path)
        if known is None:
            known = self._known[path] = self._fetched(path, name)
        return known

    def _fetched(self, path: str, name: str) -> RegistrySchema:
        try:
            with urlopen(Request(self._url + path, headers=self._headers), timeout=self._timeout_s) as answer:
                found: Any = json.load(answer)
            return RegistrySchema(
                name,
                found.get("schemaType", "AVRO"),
                found["schema"],
                tuple((each["subject"], int(each["version"])) for each in found.get("references") or ()),
                found.get("id"),
            )
        except HTTPError as error:
            error.close()
            if error.code in (_NOT_FOUND, _UNPROCESSABLE):
                raise ValueError(f"schema {name} is not in the registry {self._url}") from None
            raise ConnectionError(f"The registry {self._url} answers {error.code} {error.reason}") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise ConnectionError(f"The registry {self._url} does not answer: {reason}") from None
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            text = f"The registry {self._url} answers {path} with something else: {type(error).__name__}"
            raise ConnectionError(text) from None
