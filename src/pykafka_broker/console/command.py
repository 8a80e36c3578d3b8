"""`console`: serve pages about a cluster to browsers, until Ctrl-C."""

from __future__ import annotations

import os
import sys

import click

from pykafka_broker.cli.cluster import DEFAULT_BOOTSTRAP_SERVER
from pykafka_broker.cli.logging_setup import set_up_logging
from pykafka_broker.cli.options import Seconds, gathered, list_option
from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.cli.security import identity_with
from pykafka_broker.client.core.addresses import parse_address, parse_addresses
from pykafka_broker.client.core.connection import CLIENT
from pykafka_broker.system.named_tuple import NamedTuple


class Options(NamedTuple):
    """The options of the command."""

    bootstrap: str
    listen: str
    host_names: tuple[str, ...]
    write: bool
    timeout_s: float
    command_config: str | None
    ca: str | None
    certificate: str | None
    key: str | None
    registry: str | None
    protobuf: str | None


class Serving(NamedTuple):
    """A console that serves."""

    url: str
    bootstrap: str


@click.command()
@list_option(
    "-b",
    "--bootstrap",
    metavar="HOST:PORT[,…]",
    envvar="PYKAFKA_BROKER_BOOTSTRAP_SERVER",
    show_envvar=True,
    default=DEFAULT_BOOTSTRAP_SERVER,
    show_default=True,
    help="Brokers of the cluster, also of Apache Kafka.",
)
@click.option(
    "-l", "--listen", metavar="HOST:PORT", default="127.0.0.1:9080", show_default=True, help="Where to serve."
)
@click.option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="A name by which browsers may call it besides localhost and the host of --listen; repeatable.",
)
@click.option("--write", is_flag=True, help="Let visitors change what their ACLs allow, too.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Seconds(0.1),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a page waits for the cluster.",
)
@click.option(
    "--command-config",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Properties of a Kafka client, for ssl.*: users are those who sign in.",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Connect with TLS to brokers whose certificates these sign (PEM).",
)
@click.option(
    "--certificate",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Serve HTTPS with this certificate (PEM).",
)
@click.option(
    "--key", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="Its private key (PEM)."
)
@click.option("--registry", metavar="URL", help="A schema registry, to read Avro.")
@click.option(
    "--protobuf",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A set of descriptors of protoc, to read Protobuf.",
)
@json_option(Serving)
@gathered(Options, "options")
def console(options: Options, output: Output) -> None:
    """Serve pages about a cluster to browsers.

    It shows only, unless --write is given. Where the cluster has SASL, visitors sign in as its users.
    Sign-ins and changes are logged; KAFKA_LOG4J_ROOT_LOGLEVEL and KAFKA_LOG4J_LOGGERS set log levels.
    """
    try:
        parse_addresses(options.bootstrap)
        host, port = parse_address(options.listen)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if (options.certificate is None) != (options.key is None):
        raise click.UsageError("--certificate and --key go together.")
    security = identity_with(CLIENT, options.command_config, None, options.ca).security
    if security is not None and security.login is not None:
        raise click.UsageError("The console has no user of its own, visitors sign in: leave sasl.* out.")
    try:
        from pykafka_broker.console.server import bound, server
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"console needs {error.name}: python3 -m pip install 'pykafka-broker[console]'"
        ) from None
    from pykafka_broker.console.settings import Settings

    with bound(host, port) as taken:
        try:
            # Standard output is for the object alone.
            set_up_logging(os.environ, sys.stderr if output.form is Form.JSON else None)
        except ValueError as error:
            raise click.ClickException(str(error)) from None
        port = taken.getsockname()[1]
        settings = Settings(
            options.bootstrap,
            options.timeout_s,
            security,
            options.write,
            options.registry,
            options.protobuf,
            host,
            port,
            options.host_names,
        )
        scheme = "http" if options.certificate is None else "https"
        at = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"
        output.show(Serving(at, options.bootstrap), [f"Console of {options.bootstrap}: {at}"])
        sys.stdout.flush()
        server(settings, options.certificate, options.key).run([taken])
