"""The commands of the metadata shell: `(session, line) -> Outcome`, pure; they behave as in Apache's shell.

Paths may have `*`, `?` and `{a,b}`. Differences on purpose: problems are separate from results, so that a
script can fail for them; `find` names the nodes that a pattern matches, not the pattern; words may be quoted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence

from pykafka_broker.cli.metadata_shell.tree import Directory, Node
from pykafka_broker.config.suggestions import did_you_mean
from pykafka_broker.system.named_tuple import NamedTuple

#: A longer component of a path is a plain name.
MAX_PATTERN_CHARACTERS = 1_000
#: The number of lines that `history` shows by default.
HISTORY_LINES = 100
COLUMN_GAP = 2


class Session(NamedTuple):
    """The state of a session. `width` is that of the terminal; with None, lists have one name a line."""

    root: Directory
    working_directory: str = "/"
    history: Sequence[str] = ()
    width: int | None = None


class Outcome(NamedTuple):
    """What a command printed, its problems, and the session's directory after it."""

    working_directory: str
    lines: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    has_ended: bool = False


class Command(NamedTuple):
    """A command: its help, and how many arguments it takes (None: any number)."""

    usage: str
    description: str
    least: int
    most: int | None
    run: Callable[[Session, Sequence[str]], Outcome]


def execute(session: Session, line: str) -> Outcome:
    """Run a line as it is typed; an empty one, or a comment, does nothing."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        return Outcome(session.working_directory, problems=(f"{error}.",))
    return run(session, words)


def run(session: Session, words: Sequence[str]) -> Outcome:
    """Run a command, given as its words."""
    if not words:
        return Outcome(session.working_directory)
    name, *arguments = words
    command = COMMANDS.get(name)
    if command is None:
        problem = f"{name}: no such command.{did_you_mean(name, list(COMMANDS))} See help."
    elif len(arguments) < command.least or (command.most is not None and len(arguments) > command.most):
        problem = f"usage: {command.usage}"
    else:
        return command.run(session, arguments)
    return Outcome(session.working_directory, problems=(problem,))


def completions(session: Session, before: str, text: str) -> list[str]:
    """The completions of `text`, given the line `before` it: a command, else a path."""
    if not before.strip():
        return [f"{name} " for name in COMMANDS if name.startswith(text)]
    if before.split() == ["man"]:
        return [f"{name} " for name in COMMANDS if name.startswith(text)]
    folder, slash, start = text.rpartition("/")
    node = _at(session.root, _components(session, folder + slash))
    if not isinstance(node, Directory):
        return []
    return [
        f"{folder}{slash}{name}" + ("/" if isinstance(node.child(name), Directory) else " ")
        for name in node.sorted_names()
        if name.startswith(start)
    ]


# -- paths -----------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A node that a path leads to."""

    path: tuple[str, ...]
    node: Node

    @property
    def absolute_path(self) -> str:
        return "/" + "/".join(self.path)

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else "/"


def _components(session: Session, path: str) -> list[str]:
    """The names along a path from the root, without `.` and `..`."""
    absolute = path if path.startswith("/") else f"{session.working_directory}/{path}"
    components: list[str] = []
    for name in absolute.split("/"):
        if name == "..":
            del components[-1:]
        elif name not in ("", "."):
            components.append(name)
    return components


def _at(root: Directory, components: Sequence[str]) -> Node | None:
    node: Node | None = root
    for name in components:
        if not isinstance(node, Directory):
            return None
        node = node.child(name)
    return node


def matching(session: Session, path: str) -> list[Found]:
    """The nodes that a path leads to, in order; several if it is a pattern."""
    found = [Found((), session.root)]
    for component in _components(session, path):
        pattern = _pattern(component)
        found = [
            Found((*parent.path, name), child)
            for parent in found
            if isinstance(parent.node, Directory)
            for name in ([component] if pattern is None else parent.node.sorted_names())
            if (pattern is None or pattern.fullmatch(name)) and (child := parent.node.child(name)) is not None
        ]
    return found


def _pattern(component: str) -> re.Pattern[str] | None:
    """The regular expression of a component; None if it is a plain name, or not a well-formed pattern."""
    if not any(character in component for character in "*?{") or len(component) > MAX_PATTERN_CHARACTERS:
        return None
    expression, in_group = "", False
    for character in component:
        if character == "*":
            if not expression.endswith(".*"):
                expression += ".*"
        elif character == "?":
            expression += "."
        elif character == "{":
            if in_group:
                return None
            expression, in_group = expression + "(?:", True
        elif character == "," and in_group:
            expression += "|"
        elif character == "}" and in_group:
            expression, in_group = expression + ")", False
        else:
            expression += re.escape(character)
    return None if in_group else re.compile(expression, re.DOTALL)


# -- commands --------------------------------------------------------------------------------------------


def _cat(session: Session, paths: Sequence[str]) -> Outcome:
    lines: list[str] = []
    problems: list[str] = []
    for path in paths:
        found = matching(session, path)
        if not found:
            problems.append(f"cat: {path}: No such file or directory.")
        for one in found:
            if isinstance(one.node, Directory):
                problems.append(f"cat: {path}: Is a directory")
            else:
                lines.append(one.node)
    return Outcome(session.working_directory, tuple(lines), tuple(problems))


def _cd(session: Session, arguments: Sequence[str]) -> Outcome:
    path = arguments[0] if arguments else "/"
    directory, problems = session.working_directory, []
    found = matching(session, path)
    if not found:
        problems.append(f"cd: {path}: no such directory.")
    for one in found:
        if isinstance(one.node, Directory):
            directory = one.absolute_path
        else:
            problems.append(f"cd: {path}: not a directory.")
    return Outcome(directory, problems=tuple(problems))


def _exit(session: Session, _arguments: Sequence[str]) -> Outcome:
    return Outcome(session.working_directory, has_ended=True)


def _find(session: Session, paths: Sequence[str]) -> Outcome:
    lines: list[str] = []
    problems: list[str] = []
    for path in paths or (".",):
        found = matching(session, path)
        if not found:
            problems.append(f"find: {path}: no such file or directory.")
        is_pattern = any(_pattern(name) is not None for name in path.split("/"))
        for one in found:
            lines += _below(one.absolute_path if is_pattern else path, one.node)
    return Outcome(session.working_directory, tuple(lines), tuple(problems))


def _below(path: str, node: Node) -> Iterator[str]:
    yield path
    if isinstance(node, Directory):
        for name in node.sorted_names():
            child = node.child(name)
            assert child is not None, name
            yield from _below(f"{path}{name}" if path.endswith("/") else f"{path}/{name}", child)


def _help(session: Session, _arguments: Sequence[str]) -> Outcome:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage:<{width}}  {command.description}" for command in COMMANDS.values()]
    return Outcome(session.working_directory, tuple(lines))


def _history(session: Session, arguments: Sequence[str]) -> Outcome:
    if arguments and not (arguments[0].isascii() and arguments[0].isdigit()):
        return Outcome(session.working_directory, problems=(f"history: {arguments[0]}: not a number.",))
    count = int(arguments[0]) if arguments else HISTORY_LINES
    numbered = [f"{number:5}  {line}" for number, line in enumerate(session.history, 1)]
    return Outcome(session.working_directory, tuple(numbered[max(len(numbered) - count, 0) :]))


def _ls(session: Session, paths: Sequence[str]) -> Outcome:
    files: list[str] = []
    directories: list[tuple[str, list[str]]] = []
    problems: list[str] = []
    for path in paths or (".",):
        found = matching(session, path)
        if not found:
            problems.append(f"ls: {path}: no such file or directory.")
        for one in found:
            if isinstance(one.node, Directory):
                directories.append((one.name, one.node.sorted_names()))
            else:
                files.append(one.name)
    lines = in_columns(files, session.width)
    has_titles = bool(files) or len(directories) > 1
    for name, names in directories:
        if has_titles and names:
            lines += ["", f"{name}:"] if lines else [f"{name}:"]
        lines += in_columns(names, session.width)
    return Outcome(session.working_directory, tuple(lines), tuple(problems))


def in_columns(names: Sequence[str], width: int | None) -> list[str]:
    """The names in as few lines as fit, in order from the top down; one a line without a width."""
    if not names:
        return []
    most = 1 if width is None else min(len(names), max(width // (COLUMN_GAP + 1), 1))
    for columns in range(most, 0, -1):
        height = -(-len(names) // columns)
        parts = [names[start : start + height] for start in range(0, len(names), height)]
        widths = [max(map(len, part)) for part in parts]
        if columns == 1 or (width is not None and sum(widths) + COLUMN_GAP * (len(parts) - 1) <= width):
            break
    gap = " " * COLUMN_GAP
    return [
        gap.join(
            f"{part[row]:<{size}}" for part, size in zip(parts, widths, strict=True) if row < len(part)
        ).rstrip()
        for row in range(height)
    ]


def _man(session: Session, arguments: Sequence[str]) -> Outcome:
    command = COMMANDS.get(arguments[0])
    if command is None:
        problem = f"man: unknown command {arguments[0]}. See help."
        return Outcome(session.working_directory, problems=(problem,))
    lines = (f"{arguments[0]}: {command.description}", "", f"usage: {command.usage}")
    return Outcome(session.working_directory, lines)


def _pwd(session: Session, _arguments: Sequence[str]) -> Outcome:
    return Outcome(session.working_directory, (session.working_directory,))


def _tree(session: Session, paths: Sequence[str]) -> Outcome:
    lines: list[str] = []
    problems: list[str] = []
    for path in paths:
        found = matching(session, path)
        if not found:
            problems.append(f"tree: {path}: No such file or directory.")
        for one in found:
            lines += _branches(one.node, "")
    return Outcome(session.working_directory, tuple(lines), tuple(problems))


def _branches(node: Node, indent: str) -> Iterator[str]:
    if not isinstance(node, Directory):
        yield indent + node
        return
    for name in node.sorted_names():
        child = node.child(name)
        assert child is not None, name
        yield f"{indent}{name}:"
        yield from _branches(child, indent + "  ")


#: The commands, in the order in which `help` has them.
COMMANDS: dict[str, Command] = {
    "cat": Command("cat PATH...", "Show the contents of files.", 1, None, _cat),
    "cd": Command("cd [PATH]", "Go to another directory; without one to /.", 0, 1, _cd),
    "exit": Command("exit", "End the shell.", 0, 0, _exit),
    "find": Command("find [PATH...]", "List all nodes below directories.", 0, None, _find),
    "help": Command("help", "List the commands.", 0, 0, _help),
    "history": Command("history [COUNT]", "Show the lines that were typed.", 0, 1, _history),
    "ls": Command("ls [PATH...]", "List what is in directories.", 0, None, _ls),
    "man": Command("man COMMAND", "Show what a command does.", 1, 1, _man),
    "pwd": Command("pwd", "Show the directory in which the shell is.", 0, 0, _pwd),
    "tree": Command("tree PATH...", "Show directories with the contents of their files.", 1, None, _tree),
}
