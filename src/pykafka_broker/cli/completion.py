"""`completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pykafka_broker.cli.output import Output, json_option
from pykafka_broker.system.named_tuple import NamedTuple

PROGRAM = "pykafka-broker"
#: The variable by which the script asks the program; click derives it from the program's name.
VARIABLE = "_PYKAFKA_BROKER_COMPLETE"


class Script(NamedTuple):
    """The completion script for a shell."""

    shell: str
    script: str


@click.command(
    # \b keeps the lines as they are, for they are pasted.
    epilog="""\b
bash, in ~/.bashrc:
  eval "$(pykafka-broker completion bash)"
zsh, in ~/.zshrc, behind compinit:
  eval "$(pykafka-broker completion zsh)"
fish:
  pykafka-broker completion fish > ~/.config/fish/completions/pykafka-broker.fish
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option(Script)
def completion(shell: str, output: Output) -> None:
    """Print the script that makes a shell complete commands and options."""
    from pykafka_broker.cli import cli

    writer = get_completion_class(shell)
    assert writer is not None, "click knows these three"
    script = writer(cli, {}, PROGRAM, VARIABLE).source()
    output.show(Script(shell, script), script.split("\n"))
