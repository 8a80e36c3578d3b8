"""What the house rules say about the shape of the code, as far as a machine can see it.

Import directions are import-linter's to check; here is what it cannot know: that every served API has its
message, its handler and its tests under one name, and that every API of Kafka is served or missed on purpose.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import pykafka_broker
from pykafka_broker.apis import APIS
from pykafka_broker.apis.api import Api
from pykafka_broker.apis.controller_apis import CONTROLLER_APIS
from pykafka_broker.apis.not_yet_served import NOT_YET_SERVED
from pykafka_broker.protocol.fields import schema_of
from pykafka_broker.protocol.messages import API_NAMES, module_name, request_type

SOURCE = Path(pykafka_broker.__file__).parent
ALL_APIS: tuple[Api[Any], ...] = (*APIS, *CONTROLLER_APIS)
TESTS = Path(__file__).parent
REPOSITORY = TESTS.parent

# --- APIs ---------------------------------------------------------------------------------------------

#: What Apache Kafka serves on a controller's listener only.
FOR_CONTROLLERS = (
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "AlterPartition",
    "Envelope",
    "FetchSnapshot",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "AllocateProducerIds",
    "ControllerRegistration",
    "AssignReplicasToDirs",
    "UpdateRaftVoter",
)
#: On listeners of controllers it shares nothing with that of brokers.
OWN_FILES = {"Fetch": "fetch_from_controller"}
#: The last stable version, where the message declares one that is not.
STABLE_UP_TO = {"InitProducerId": 5}


def by_name(api: Api[Any]) -> str:
    return api.name


@pytest.mark.parametrize("apis", [APIS, CONTROLLER_APIS], ids=["brokers", "controllers"])
def test_apis_are_listed_in_key_order_and_once(apis: tuple[Api[Any], ...]) -> None:
    keys = [api.key for api in apis]

    assert keys == sorted(set(keys))


@pytest.mark.parametrize("api", CONTROLLER_APIS, ids=by_name)
def test_an_api_of_controllers_has_its_message_its_handler_and_its_tests_under_one_name(
    api: Api[Any],
) -> None:
    name = OWN_FILES.get(api.name) or module_name(api.key)
    declared = schema_of(api.request).versions
    assert declared is not None

    assert "controller" in api.listeners
    assert api.handle.__module__ == f"pykafka_broker.apis.{name}"
    assert (api.min_version, api.max_version) == (min(declared), max(declared))
    assert (TESTS / "apis" / f"test_{name}.py").exists()


def test_every_api_of_kafka_is_served_or_missed_on_purpose() -> None:
    missed = [*FOR_CONTROLLERS, *(name for names in NOT_YET_SERVED.values() for name in names)]
    served = [api.name for api in APIS]

    assert sorted(served + missed) == sorted(API_NAMES.values())


@pytest.mark.parametrize("api", APIS, ids=by_name)
def test_an_api_has_its_message_its_handler_and_its_tests_under_one_name(api: Api[Any]) -> None:
    name = module_name(api.key)

    assert request_type(api.key) is api.request
    assert getattr(import_module(f"pykafka_broker.apis.{name}"), name) is api
    assert (TESTS / "apis" / f"test_{name}.py").exists()


@pytest.mark.parametrize("api", APIS, ids=by_name)
def test_an_api_is_served_at_the_complete_range_of_its_message(api: Api[Any]) -> None:
    declared = schema_of(api.request).versions
    assert declared is not None
    last = STABLE_UP_TO.get(api.name, max(declared))

    assert (api.min_version, api.max_version) == (min(declared), last)


#: Files of `apis/` that are no API.
SHARED = {
    *("acls", "admission", "api", "delegation_tokens", "denials"),
    *("broker_loggers", "altering_configs", "consumer_groups", "context"),
    *("controller_apis", "forwarding", "streams_groups"),
    *("controller_mutations", "leader_hints", "needs"),
    "not_yet_served",
    *("told_changes", "topology", "transactional"),
}


def test_every_handler_file_is_an_api_or_shared_by_some() -> None:
    files = {path.stem for path in (SOURCE / "apis").glob("*.py")} - {"__init__"}

    assert files - SHARED == {module_name(api.key) for api in ALL_APIS} | set(OWN_FILES.values())


def test_a_handler_is_imported_by_the_lists_of_apis_alone() -> None:
    """What two handlers have in common is in a file below both."""
    lists = ("apis/__init__.py", "apis/controller_apis.py")
    handlers = {f"pykafka_broker.apis.{module_name(api.key)}" for api in ALL_APIS}
    found = {
        (path, module)
        for path, file in source_files()
        for module, _ in file.imported_from
        if module in handlers and path not in lists
    }

    # The connection answers a version of ApiVersions that is not served, without a handler.
    assert found == {("network/connection.py", "pykafka_broker.apis.api_versions")}


@pytest.mark.parametrize("api", ALL_APIS, ids=by_name)
def test_a_handlers_contract_names_its_key_and_its_versions(api: Api[Any]) -> None:
    text = import_module(f"pykafka_broker.apis.{module_name(api.key)}").__doc__ or ""

    assert text.startswith(f"{api.name} (API key {api.key}): ")
    assert re.search(r"\bv\d", text), "a word on what the versions brought"


# --- files --------------------------------------------------------------------------------------------


#: Where the repository has Python.
TREES = ("src/pykafka_broker", "tests", "interop", "bench")


class File(NamedTuple):
    """What the tests below ask of a Python file, which is small; its syntax tree is not."""

    #: It has code and no docstring.
    is_without_a_word: bool
    is_left_for_later: bool
    #: By `import`.
    imported: frozenset[str]
    #: Each module with a name that is imported from it.
    imported_from: frozenset[tuple[str, str]]
    catches_everything: bool
    #: Its logger has the name of the module.
    logs_as_module: bool
    #: As `open` or `os.open`.
    called: frozenset[str]
    #: What is named of the module `time`.
    of_time: frozenset[str]
    #: The functions that take too many parameters.
    crowded: tuple[str, ...]
    #: The classes and functions with too many lines.
    lengthy: tuple[str, ...]
    #: A constructor has `*` or `**`.
    forwards_arguments: bool

    @property
    def packages(self) -> set[str]:
        """The top-level packages that its import statements name."""
        modules = {*self.imported, *(module for module, _ in self.imported_from)}
        return {module.split(".")[0] for module in modules}


@cache
def files() -> dict[str, File]:
    """Every Python file of the repository by its path; each is parsed once for all tests."""
    paths = [path for tree in TREES for path in sorted((REPOSITORY / tree).rglob("*.py"))]
    return {path.relative_to(REPOSITORY).as_posix(): parsed(path.read_text()) for path in paths}


def source_files() -> Iterator[tuple[str, File]]:
    """Every module of the package, by its path there."""
    for path, file in files().items():
        if path.startswith("src/pykafka_broker/"):
            yield path.removeprefix("src/pykafka_broker/"), file


def parsed(text: str) -> File:
    tree = ast.parse(text)
    nodes: defaultdict[type, list[Any]] = defaultdict(list)
    for node in ast.walk(tree):
        nodes[type(node)].append(node)
    functions = nodes[ast.FunctionDef] + nodes[ast.AsyncFunctionDef]
    return File(
        is_without_a_word=bool(tree.body) and not ast.get_docstring(tree),
        is_left_for_later=re.search(r"\b(TODO|FIXME|XXX)\b", text) is not None,
        imported=frozenset(alias.name for node in nodes[ast.Import] for alias in node.names),
        imported_from=frozenset(
            (node.module or "", alias.name) for node in nodes[ast.ImportFrom] for alias in node.names
        ),
        catches_everything=any(node.type is None for node in nodes[ast.ExceptHandler]),
        logs_as_module="getLogger(__name__)" in text,
        called=frozenset(dotted(node.func) for node in nodes[ast.Call]),
        of_time=frozenset(node.attr for node in nodes[ast.Attribute] if dotted(node) == f"time.{node.attr}"),
        crowded=tuple(node.name for node in functions if len(parameters(node.args)) > MAX_PARAMETERS),
        lengthy=tuple(
            node.name
            for most, those in ((MAX_CLASS_LINES, nodes[ast.ClassDef]), (MAX_FUNCTION_LINES, functions))
            for node in those
            if node.end_lineno - node.lineno >= most
        ),
        forwards_arguments=any(
            node.name == "__init__" and (node.args.vararg or node.args.kwarg)
            for node in nodes[ast.FunctionDef]
        ),
    )


def dotted(expression: ast.expr) -> str:
    """A name, or an attribute of one, as it is written; empty for all else."""
    match expression:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return f"{name}.{attribute}"
    return ""


def parameters(arguments: ast.arguments) -> list[str]:
    """The names of all parameters but `self` and `cls`."""
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def test_a_module_says_first_what_it_is() -> None:
    assert [path for path, file in source_files() if file.is_without_a_word] == []


def test_nothing_is_left_for_later() -> None:
    assert [path for path, file in source_files() if file.is_left_for_later] == []


def test_nothing_is_caught_without_a_name() -> None:
    assert [path for path, file in source_files() if file.catches_everything] == []


def test_operators_find_lines_under_the_names_of_apaches_components() -> None:
    """Whose log it is, is what `KAFKA_LOG4J_LOGGERS` and filters go by, not how this code is cut."""
    of_modules = {path for path, file in source_files() if file.logs_as_module}
    raft = {"raft/quorum_peers.py", "raft/received_snapshots.py", "raft/storage.py"}

    assert of_modules <= raft | {"spark/lag.py", "spark/kafka_log/losses.py"}


def test_only_the_code_generator_runs_generated_code() -> None:
    runs = {path for path, file in source_files() if file.called & {"exec", "eval"}}

    assert runs <= {"protocol/codegen.py", "protocol/compile.py", "protocol/schema.py"}


def test_time_is_read_by_the_servers_clock_and_given_to_all_others() -> None:
    """Handlers, configs and logs take the time from their caller, so that tests decide what time it is."""
    below = {"apis", "config", "controller", "metadata", "cluster", "coordinator", "raft", "log", "protocol"}
    # A separate process has no caller to take the time from.
    programs = {"log/cleaner/process.py", "log/check/scrub_process.py"}
    clocks = {"time", "time_ns", "monotonic", "monotonic_ns"}
    found = {path for path, file in source_files() if path.split("/")[0] in below and file.of_time & clocks}

    assert found == programs


def test_handlers_do_no_input_and_output_of_their_own() -> None:
    forbidden = {"asyncio", "os", "socket", "threading", "time", "random", "uvloop"}
    found = {
        (path, name)
        for path, file in source_files()
        for name in file.packages & forbidden
        if path.startswith("apis/")
    }

    assert found == set()


#: Files beside the file layer that open files by themselves, and why.
OPEN_FILES = {
    "log/disk/files.py": "the file layer",
    "config/properties_file.py": "reads the file that the command line names, before there is a node",
    "config/image_secrets.py": "reads passwords where the variables of the image say they are",
    "config/providers.py": "reads secrets where the properties file says they are, before there is a node",
    "broker/security/key_sets.py": "reads the keys of an identity provider where the properties file says",
    "client/bearer_tokens.py": "reads a bearer token where the properties file says it is",
    "cli/__init__.py": "puts the null device in place of an output whose reader is gone",
    "cli/certs.py": "writes keys and certificates where the command line says",
    "cli/log_files.py": "prints files for `dump-log` as they are, wherever they lie",
    "cli/security.py": "reads the authority that `--ca` names, for programs that get it as a text",
    "cli/metadata_shell/files.py": "reads the metadata log for `metadata shell` as it is, wherever it lies",
    "local_cluster/free_ports.py": "locks the ports that processes have been given, before there is a node",
    "system/descriptors.py": "holds descriptors of the null device in reserve",
    "system/processes.py": "asks /proc about processes",
    "tls/contexts.py": "gives OpenSSL keys, which it takes from files only",
    "tls/stores.py": "reads the key and trust stores that the configuration names",
}


def test_files_are_opened_in_the_file_layer_and_in_a_few_named_places() -> None:
    """The import contract sees who imports `os`; here is who opens files, with the built-in `open` too."""
    opening = {"open", "os.open", "io.open"}

    assert {path for path, file in source_files() if file.called & opening} == set(OPEN_FILES)


def test_tests_interop_and_bench_do_not_import_each_other() -> None:
    """All of them import `pykafka_broker.testing`, which has what they share."""
    folders = {"tests", "interop", "bench"}
    found = {
        (path, name)
        for path, file in files().items()
        for name in file.packages & folders
        if (folder := path.split("/")[0]) in folders and name != folder
    }

    assert found == set()


def test_dir_lists_what_is_public_and_everything_listed_is_there() -> None:
    public = [
        "BlockingCluster",
        "Broker",
        "BrokerConfig",
        "Cluster",
        "Security",
        "__version__",
        "load_config",
    ]
    assert dir(pykafka_broker) == public
    assert [name for name in dir(pykafka_broker) if not hasattr(pykafka_broker, name)] == []


# --- shape --------------------------------------------------------------------------------------------

MAX_PARAMETERS = 8
MAX_CLASS_LINES = 400
MAX_FUNCTION_LINES = 80
#: Files with a constructor that takes a list of things, and keeps it: folders, rights, answers, handlers.
TAKE_LISTS = (
    "tests/log/manager/test_log_manager.py",
    "tests/apis/test_admission.py",
    "tests/apis/test_denials.py",
    "tests/client/test_metadata.py",
    "tests/support/serving.py",
)


def test_no_function_takes_more_than_eight_parameters() -> None:
    """What travels together is a value with a name."""
    assert {f"{path}: {name}" for path, file in files().items() for name in file.crowded} == set()


def test_no_class_and_no_function_of_the_package_is_too_long() -> None:
    assert [(path, name) for path, file in source_files() for name in file.lengthy] == []


def test_constructors_forward_no_arguments_that_they_do_not_name() -> None:
    """But for messages, whose constructors are compiled."""
    found = {path for path, file in files().items() if file.forwards_arguments}

    assert found == {"src/pykafka_broker/protocol/schema.py", *TAKE_LISTS}


def test_no_files_import_each_other_in_a_circle() -> None:
    """Imports for type checkers count: a type that two files need stands in one below both."""
    TopologicalSorter(imports_of_modules()).prepare()  # raises CycleError, which names the circle


def test_a_core_does_not_know_its_shell() -> None:
    known = {
        (name, imported)
        for name, imports in imports_of_modules().items()
        if name.startswith("pykafka_broker.") and ".core." in name
        for imported in imports
        if imported.startswith(room := name[: name.index(".core.") + 1])
        and not imported.startswith(f"{room}core.")
    }

    assert known == set()


def imports_of_modules() -> dict[str, set[str]]:
    """Every module of the repository, with those of them that it imports."""
    modules = {module_of(path): file for path, file in files().items()}
    found = {}
    for name, file in modules.items():
        imported = set(file.imported)
        for module, member in file.imported_from:
            dotted_name = f"{module}.{member}"
            imported.add(dotted_name if dotted_name in modules else module)
        found[name] = (imported & modules.keys()) - {name}
    return found


def module_of(path: str) -> str:
    """The dotted name of a file of the repository."""
    parts = path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").split("/")
    return ".".join(parts)


@pytest.mark.parametrize("page", ["architecture.md", "decisions/*.md"])
def test_the_pages_on_the_architecture_name_files_that_exist(page: str) -> None:
    text = "".join(path.read_text() for path in (REPOSITORY / "docs").glob(page))
    before_what_comes = text.partition("## Where the coming parts go")[0]
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*[a-z_]\.py)`", before_what_comes))
    missing = [name for name in named if not ((SOURCE / name).exists() or (REPOSITORY / name).exists())]

    assert named
    assert sorted(missing) == []


def undrawn(packages: Iterable[str]) -> list[str]:
    """Those of the packages that docs/architecture.md draws in no room and no row: a package of the first
    level has a room, a core has a row of its own.
    """
    text = (REPOSITORY / "docs" / "architecture.md").read_text()
    _, rooms, cores = re.split("<!-- rooms: generated -->|<!-- end of rooms -->", text)
    drawn = set(re.findall(r"^([a-z_]+)/", rooms, re.MULTILINE))
    rows = re.findall(r"^\| `.*", cores.partition("## Eight trips")[0], re.MULTILINE)
    drawn |= {core for row in rows for core in re.findall(r"`([a-z_/]+/core)/", row.split("|")[1])}
    return sorted(package for package in packages if package not in drawn)


def test_the_page_draws_every_package_and_every_core() -> None:
    packages = {path.parent.relative_to(SOURCE) for path in SOURCE.rglob("__init__.py")} - {Path()}
    levels = {package.as_posix() for package in packages if len(package.parts) == 1 or package.name == "core"}

    assert undrawn(levels) == []
    assert undrawn({*levels, "weather", "weather/core", "log/core"}) == [
        "log/core",
        "weather",
        "weather/core",
    ]
