"""The stored result of the last run: one JSON file per API, sorted, without times, made to be read as a diff.

    {"an_unknown_topic": {"0-11": "equal", "12-13": {"verdict": "words", "differences": [...]}}, ...}

Neighbouring versions with the same outcome share an entry. A run of some conversations replaces theirs and
leaves the others as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from interop.conformance.conversation import Case, conversations
from interop.conformance.play import Result, Verdict

FOLDER = Path(__file__).parent / "results"

#: By API, conversation and version: "equal", or a dict with the verdict and what differs.
Outcome = Any
Outcomes = dict[str, dict[str, dict[int, Outcome]]]


def outcome_of(result: Result) -> Outcome:
    if result.verdict is Verdict.EQUAL:
        return result.verdict.value
    shown: dict[str, Any] = {"verdict": result.verdict.value}
    if result.accepted:
        shown["accepted"] = list(result.accepted)
    if result.problem:
        shown["problem"] = result.problem
    shown["differences"] = [
        {"path": difference.path, "apache": difference.apache, "ours": difference.ours}
        for difference in result.differences
    ]
    return shown


def verdict_of(outcome: Outcome) -> Verdict:
    return Verdict(outcome if isinstance(outcome, str) else outcome["verdict"])


def load(folder: Path = FOLDER) -> Outcomes:
    """The stored outcomes."""
    stored: Outcomes = {}
    for path in sorted(folder.glob("*.json")):
        told = json.loads(path.read_text())
        stored[path.stem] = {name: expanded(versions) for name, versions in told.items()}
    return stored


def merge(stored: Outcomes, results: Iterable[Result]) -> Outcomes:
    """`stored` with the outcome of `results`, and without conversations that are not declared any more."""
    news: Outcomes = {}
    for result in results:
        told = result.case.conversation
        news.setdefault(told.api, {}).setdefault(told.name, {})[result.case.version] = outcome_of(result)
    merged: Outcomes = {}
    for told in conversations():
        old = stored.get(told.api, {}).get(told.name, {})
        new = {**old, **news.get(told.api, {}).get(told.name, {})}
        kept = {version: new[version] for version in told.versions if version in new}
        if kept:
            merged.setdefault(told.api, {})[told.name] = kept
    return merged


def store(outcomes: Outcomes, folder: Path = FOLDER) -> None:
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        if path.stem not in outcomes:
            path.unlink()
    for api, told in outcomes.items():
        shown = {name: compressed(versions) for name, versions in sorted(told.items())}
        (folder / f"{api}.json").write_text(json.dumps(shown, indent=1, ensure_ascii=False) + "\n")


def missing(outcomes: Outcomes, cases: Iterable[Case]) -> list[Case]:
    """The cases that no stored result knows."""
    return [
        case
        for case in cases
        if case.version not in outcomes.get(case.conversation.api, {}).get(case.conversation.name, {})
    ]


def superfluous(outcomes: Outcomes, cases: Iterable[Case]) -> list[str]:
    """The stored results of cases that are not declared."""
    declared = {str(case) for case in cases}
    stored = [
        f"{api}/{name} v{version}"
        for api, told in outcomes.items()
        for name, versions in told.items()
        for version in versions
    ]
    return [case for case in stored if case not in declared]


def compressed(versions: dict[int, Outcome]) -> dict[str, Outcome]:
    runs: list[tuple[int, int, Outcome]] = []
    for version, outcome in sorted(versions.items()):
        alike = without_versions(outcome, version)
        if runs and runs[-1][1] == version - 1 and runs[-1][2] == alike:
            runs[-1] = (runs[-1][0], version, alike)
        else:
            runs.append((version, version, alike))
    return {span(first, last): outcome for first, last, outcome in runs}


def without_versions(outcome: Outcome, version: int) -> Outcome:
    """The outcome with the version under test as "vN" in its paths, so that versions can be alike."""
    if isinstance(outcome, str):
        return outcome
    differences = [
        {**each, "path": each["path"].replace(f" v{version}.", " vN.")} for each in outcome["differences"]
    ]
    return {**outcome, "differences": differences}


def expanded(spans: dict[str, Outcome]) -> dict[int, Outcome]:
    return {version: outcome for text, outcome in spans.items() for version in versions_of(text)}


def span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def versions_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def spans(versions: Sequence[int]) -> str:
    """Versions in the shortest words: "0-3, 5"."""
    return ", ".join(compressed(dict.fromkeys(versions, "")))
