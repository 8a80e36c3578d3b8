"""The stored results are about the declared conversations, and the published page tells of them."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from interop.conformance import results, table
from interop.conformance.accepted import ACCEPTED
from interop.conformance.apis import ABOUT_EVERY_API, ABOUT_NO_API, FILES, PARTS
from interop.conformance.conversation import Conversation, cases, conversations, load
from interop.conformance.play import Verdict
from interop.conformance.results import Outcomes
from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.protocol.messages import module_name

RERUN = "run `make conformance`, or with --api and --only what has changed"
FOLDER = Path(table.__file__).parent / "apis"


def test_the_stored_results_know_every_declared_conversation_and_no_other() -> None:
    stored = results.load()
    assert not results.missing(stored, cases()), RERUN
    assert not results.superfluous(stored, cases()), RERUN


def test_no_two_conversations_of_an_api_have_one_name() -> None:
    told = [(told.api, told.name) for told in conversations()]
    assert [name for name in told if told.count(name) > 1] == []


def test_every_file_of_conversations_is_listed_and_holds_some() -> None:
    assert sorted(FILES) == sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    assert {told.api for told in conversations()} == {
        PARTS.get(file, file) for file in FILES if file not in ABOUT_EVERY_API
    }
    assert all(any(isinstance(value, Conversation) for value in vars(load(file)).values()) for file in FILES)


def test_every_version_of_every_served_api_is_conversed_about() -> None:
    told: dict[str, set[int]] = {}
    for case in cases():
        told.setdefault(case.conversation.api, set()).add(case.version)
    apis: tuple[Api[Any], ...] = (*APIS, *CONTROLLER_APIS)
    assert {module_name(api.key): set(range(api.min_version, api.max_version + 1)) for api in apis} == {
        api: versions for api, versions in told.items() if api not in ABOUT_NO_API
    }


def test_every_difference_is_accepted_with_a_reason() -> None:
    counts = table.totals(results.load())
    assert not counts[Verdict.DIFFERENT]
    assert not counts[Verdict.BROKEN]
    assert all(entry.reason for entry in ACCEPTED)


def test_every_accepted_difference_occurs() -> None:
    occurring = {
        name
        for told in results.load().values()
        for versions in told.values()
        for outcome in versions.values()
        if isinstance(outcome, dict)
        for name in outcome.get("accepted", ())
    }
    assert occurring == {entry.name for entry in ACCEPTED}
    assert len(ACCEPTED) == len({entry.name for entry in ACCEPTED})


def test_every_path_of_an_accepted_difference_occurs() -> None:
    occurring = {
        (name, each["path"], each["ours"])
        for told in results.load().values()
        for versions in told.values()
        for outcome in versions.values()
        if isinstance(outcome, dict)
        for name in outcome.get("accepted", ())
        for each in outcome["differences"]
    }
    unused = [
        f"{entry.name}: {path}"
        for entry in ACCEPTED
        for path, ours in entry.differences.items()
        if not any(
            name == entry.name and fnmatchcase(found, path) and (told == ours or fnmatchcase(told, ours))
            for name, found, told in occurring
        )
    ]
    assert unused == []


def test_what_is_stored_is_what_is_loaded(tmp_path: Path) -> None:
    stored = results.load()
    results.store(stored, tmp_path)
    assert results.load(tmp_path) == stored


def test_versions_with_the_same_outcome_share_an_entry() -> None:
    differs = {"verdict": "words", "differences": [{"path": "1 Metadata v4.x", "apache": "1", "ours": "2"}]}
    same_at_5 = {"verdict": "words", "differences": [{"path": "1 Metadata v5.x", "apache": "1", "ours": "2"}]}
    told = results.compressed({0: "equal", 1: "equal", 3: "equal", 4: differs, 5: same_at_5})
    assert list(told) == ["0-1", "3", "4-5"]


def test_a_page_tells_of_what_differs() -> None:
    shown = [{"path": "1 Metadata vN.error_code", "apache": '"0 NONE"', "ours": '"3"'}]
    outcomes: Outcomes = {
        "metadata": {
            "a_topic": {0: "equal", 1: {"verdict": "different", "differences": shown}},
            "words": {2: {"verdict": "words", "differences": [{**shown[0], "path": "x.error_message"}]}},
        }
    }
    page = table.page(outcomes)
    assert "**2 of 3 conversations equal (1 of them say an error in other words, 1 differ).**" in page
    assert "whatever its versions: 1 of 2 are equal at every version." in page
    assert "| Metadata | 0-2 | 3 | 2 | 1 | 0 | 1 |" in page
    assert '- Metadata v1, a topic\n  - `1 Metadata vN.error_code`: Apache "0 NONE", ours "3"' in page
    assert '| Metadata | "0 NONE" | "3" |' in page
