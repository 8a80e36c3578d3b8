"""How a conversation is declared: a function that talks to a broker, and the versions at which it is held.

    @conversation
    def an_unknown_topic_is_named_with_an_error(talk: Talk) -> None:
        talk.ask(MetadataRequest(topics=[...]), E.UNKNOWN_TOPIC_OR_PARTITION)

The file names the API (`apis/metadata.py`), the function says what is to be seen. Played at every version
that is served, a declaration counts as one conversation per version; `@conversation("4+")`, `"0-3"` or
`LATEST` choose some. With `settings` it is held with brokers of its own, which are started with them. The
function is called once per broker and version with a `Talk` (`talk.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import overload

from interop.conformance.apis import FILES, PARTS
from interop.conformance.talk import Subject, Talk
from interop.conformance.versions import served_versions
from pykafka_broker.protocol.fields import version_range
from pykafka_broker.protocol.messages import API_NAMES, module_name

Function = Callable[[Talk], None]

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

#: The newest version only: for what does not depend on the version.
LATEST = "latest"
#: The oldest and the newest.
ENDS = "ends"


@dataclass(frozen=True)
class Conversation:
    #: The file below `apis/` that holds it: an API, or one of `ABOUT_NO_API`.
    api: str
    name: str
    versions: tuple[int, ...]
    #: It is held while no other is, because it sees or changes things that belong to all.
    alone: bool
    #: The same, after all others: it leaves Apache Kafka ill for minutes.
    last: bool
    function: Function = field(compare=False)
    #: Settings with which both brokers are started for it, beside those of `play.py`.
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.api}/{self.name}"

    @property
    def title(self) -> str:
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class Case:
    """A conversation at one version; these are counted."""

    conversation: Conversation
    version: int

    def __str__(self) -> str:
        return f"{self.conversation.id} v{self.version}"

    @property
    def subject(self) -> Subject:
        return Subject(self.conversation.api, self.conversation.id, self.version)


@overload
def conversation(function: Function, /) -> Conversation: ...


@overload
def conversation(
    versions: str = "0+",
    /,
    *,
    alone: bool = False,
    last: bool = False,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Callable[[Function], Conversation]: ...


def conversation(
    what: Function | str = "0+",
    /,
    *,
    alone: bool = False,
    last: bool = False,
    settings: Mapping[str, str] = NO_SETTINGS,
) -> Conversation | Callable[[Function], Conversation]:
    """Declare a conversation, at all served versions or at those that `what` names."""
    if not isinstance(what, str):
        return declare(what, "0+", alone, last, settings)
    return lambda function: declare(function, what, alone, last, settings)


def declare(
    function: Function, versions: str, alone: bool, last: bool, settings: Mapping[str, str]
) -> Conversation:
    file = function.__module__.rpartition(".")[2]
    api = PARTS.get(file, file)
    chosen = choose(served_versions(api), versions)
    if not chosen:
        raise ValueError(f"{api}/{function.__name__}: none of the versions {versions} is served")
    return Conversation(
        api, function.__name__, chosen, alone or last, last, function, tuple(settings.items())
    )


def choose(served: tuple[int, ...], versions: str) -> tuple[int, ...]:
    if versions == LATEST:
        return served[-1:]
    if versions == ENDS:
        return tuple(sorted({served[0], served[-1]}))
    wanted = version_range(versions)
    return tuple(version for version in served if version in wanted)


def load(api: str) -> ModuleType:
    return import_module(f"interop.conformance.apis.{api}")


def conversations() -> Iterator[Conversation]:
    """Every declared conversation, in the order of the files and in each in the order of the text."""
    for api in FILES:
        for value in vars(load(api)).values():
            if isinstance(value, Conversation):
                yield value


def cases() -> list[Case]:
    return [Case(told, version) for told in conversations() for version in told.versions]


def api_title(api: str) -> str:
    """The API's name as the protocol spells it: "OffsetFetch"; a file that is about none keeps its name."""
    return next((name for key, name in API_NAMES.items() if module_name(key) == api), api)
