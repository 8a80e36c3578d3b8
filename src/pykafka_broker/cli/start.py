"""`start`: run a broker until it is told to stop.

The first SIGTERM, SIGINT or SIGHUP (its terminal was closed; not under `nohup`) stops it in good order, as it
stops Apache Kafka: parked requests are answered, logs are synced, the clean shutdown marker is written. A
second one ends the process at once; the next start recovers acknowledged records. The lines that tools wait
for are Kafka's own and appear once, when the broker serves.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
from contextlib import AbstractAsyncContextManager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from pykafka_broker.cli.output import Form, Output, json_option
from pykafka_broker.system.interrupts import INTERRUPTED, end_at_once
from pykafka_broker.system.named_tuple import NamedTuple

if TYPE_CHECKING:
    import asyncio

    from pykafka_broker.broker.broker import Broker
    from pykafka_broker.config import BrokerConfig
    from pykafka_broker.controller.core.events import NewTopic

logger = logging.getLogger("kafka.server.KafkaRaftServer")
lifecycle_logger = logging.getLogger("kafka.server.BrokerLifecycleManager")
server_logger = logging.getLogger("kafka.server.BrokerServer")
config_logger = logging.getLogger("kafka.server.KafkaConfig")

#: The same signal within this time is the first one again: a signal to a whole process group reaches the
#: broker twice when its parent passes signals on, as make does.
ECHO_S = 1.0
#: Garbage collection starts after this many new objects. With CPython's 700, a request for a thousand
#: partitions starts it dozens of times: 10 % of its leader's processor time.
OBJECTS_UNTIL_GC = 10_000
#: The key that has another value here than in Apache Kafka where there is no properties file.
DELAY: Final = "group.initial.rebalance.delay.ms"


class Started(NamedTuple):
    """A node that serves; a controller alone has no bootstrap servers."""

    bootstrap_servers: str | None
    node_id: int
    log_dirs: list[str]


@click.command()
@click.option(
    "-c", "--config", "file", metavar="FILE", help="A server.properties file, as Apache Kafka 4.3 reads it."
)
@click.option("-d", "--data-dir", metavar="DIR", help="Where the data is; same as --override log.dirs=DIR.")
@click.option(
    "-l",
    "--listen",
    metavar="HOST:PORT",
    help="Where clients connect, in place of `listeners`; port 0 picks a free one.",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Where metrics and health are served over HTTP, in place of `metrics.listeners`.",
)
@click.option(
    "-o", "--override", "overrides", metavar="KEY=VALUE", multiple=True, help="Set one key; may be repeated."
)
@click.option("--cluster-id", metavar="ID", help="The cluster a new data directory shall belong to.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    envvar="PYKAFKA_BROKER_LOG_FORMAT",
    show_envvar=True,
    help="Kafka's lines, or one JSON object a line.",
)
@json_option(Started)
def start(
    file: str | None,
    data_dir: str | None,
    listen: str | None,
    metrics: str | None,
    overrides: tuple[str, ...],
    cluster_id: str | None,
    log_format: str,
    output: Output,
) -> None:
    """Run a broker.

    Without options it serves 127.0.0.1:9092 and keeps its data in ./pykafka-data. --override beats KAFKA_*
    environment variables, which beat the file. KAFKA_LOG4J_ROOT_LOGLEVEL and KAFKA_LOG4J_LOGGERS set log
    levels.
    """
    # Some hundred modules are loaded, and none is garbage: collecting takes 5 % of a start, and later every
    # full collection would examine them again.
    gc.disable()
    end_at_once()

    from pykafka_broker.cli.logging_setup import set_up_logging
    from pykafka_broker.cli.startup_topics import VARIABLE, parse_topics
    from pykafka_broker.config.sources import load_config

    try:
        # Standard output is for the object alone.
        stream = sys.stderr if output.form is Form.JSON else None
        set_up_logging(os.environ, stream, log_format=log_format)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    config = load_config(
        file=file,
        environ=os.environ,
        overrides=overrides,
        listen=listen,
        metrics=metrics,
        data_dir=data_dir,
        cluster_id=cluster_id,
    )
    topics = parse_topics(os.environ.get(VARIABLE, ""))
    report(config)

    from pykafka_broker.system.event_loop import run

    run(serve(config, topics, output))


def report(config: BrokerConfig) -> None:
    """Log the differences from Apache Kafka that result from the missing properties file."""
    if DELAY in config.assumed:
        config_logger.info(
            "Without a properties file %s is %d: groups do not wait for more members before they begin",
            DELAY,
            config[DELAY],
        )


async def serve(config: BrokerConfig, topics: list[NewTopic], output: Output) -> None:
    """Start a broker, create `topics`, announce that it serves, wait for a signal, stop it.

    Raises:
        click.ClickException: the broker cannot go on.
    """
    import asyncio

    from pykafka_broker.broker.broker import Broker
    from pykafka_broker.cli.startup_topics import create_topics

    stop = asyncio.Event()
    watch_signals(asyncio.get_running_loop(), stop)
    broker = Broker(config)
    logger.info("[KafkaRaftServer nodeId=%d] Starting Kafka server", config.node_id)
    if not await started(broker, stop):
        logger.info("[KafkaRaftServer nodeId=%d] Stopped before it served", config.node_id)
        return
    if topics:
        await create_topics(broker, topics)
    gc.freeze()
    gc.set_threshold(OBJECTS_UNTIL_GC)
    gc.enable()
    try:
        async with console_of(broker, config):
            announce(broker, config, output)
            failure = await wait_for_end(stop, broker)
            logger.info("[KafkaRaftServer nodeId=%d] Stopping Kafka server", config.node_id)
    finally:
        await broker.stop()
    server_logger.info("[BrokerServer id=%d] shut down completed", config.node_id)
    if failure is not None:
        raise click.ClickException(f"The broker could not go on: {failure}")


def console_of(broker: Broker, config: BrokerConfig) -> AbstractAsyncContextManager[object]:
    """The console that the broker serves while the context is entered; of a broker without one, nothing.

    Raises:
        click.ClickException: the extra `console` is not installed.
        ConfigError, OSError: the console cannot be served.
    """
    if not config.console_listeners:
        return nullcontext()
    try:
        # By its name, as commands are: the console stands above this package. Late: most brokers have none.
        beside = import_module("pykafka_broker.console.beside")
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"console.listeners needs {error.name}: python3 -m pip install 'pykafka-broker[console]'"
        ) from None
    console: AbstractAsyncContextManager[object] = beside.Beside(config, broker.node)
    return console


async def started(broker: Broker, stop: asyncio.Event) -> bool:
    """Start the broker; False if a signal came first, and the start was undone.

    A voter waits for the other voters without a time limit.
    """
    import asyncio

    starting = asyncio.ensure_future(broker.start())
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait((starting,))
    if starting.cancelled():
        return False
    await starting
    return True


async def wait_for_end(stop: asyncio.Event, broker: Broker) -> BaseException | None:
    """Wait for the signal to stop, or for the failure of the broker, which is returned."""
    import asyncio

    stopped = asyncio.ensure_future(stop.wait())
    failed = asyncio.ensure_future(broker.failed())
    done, pending = await asyncio.wait((stopped, failed), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if failed not in done:
        return None
    failure = failed.exception()
    logger.critical("[KafkaRaftServer nodeId=%d] Fatal: %s", broker.node_id, failure)
    return failure


def announce(broker: Broker, config: BrokerConfig, output: Output) -> None:
    """Announce that the node serves: Kafka's lines for programs, and one with the addresses for people."""
    from pykafka_broker.cli.logging_setup import logs_objects

    node_id = config.node_id
    bootstrap_servers = None
    if "broker" in config.process_roles:
        bootstrap_servers = broker.bootstrap_servers
        lifecycle_logger.info(
            "[BrokerLifecycleManager id=%d] The broker has been unfenced. "
            "Transitioning from RECOVERY to RUNNING.",
            node_id,
        )
    logger.info("[KafkaRaftServer nodeId=%d] Kafka Server started", node_id)
    folders = [os.path.abspath(folder) for folder in config.log_dirs]
    where = (
        f"Controller: {broker.node.served_listeners.controller_address}"
        if bootstrap_servers is None
        else f"Bootstrap servers: {bootstrap_servers}"
    )
    line = f"{where} (data in {', '.join(folders)})"
    if logs_objects() and output.form is not Form.JSON:
        server_logger.info(line)
        return
    output.show(Started(bootstrap_servers, node_id, folders), [line])
    sys.stdout.flush()


def watch_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Set `stop` at the first signal, leave at the second."""
    first = (0, 0.0)

    def on_signal(number: int) -> None:
        nonlocal first
        if stop.is_set():
            if number == first[0] and loop.time() - first[1] < ECHO_S:
                return
            logger.warning("Stopped by a second signal, without a clean shutdown")
            logging.shutdown()
            os._exit(INTERRUPTED)
        first = (number, loop.time())
        stop.set()

    numbers = [signal.SIGTERM, signal.SIGINT]
    if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        try:
            loop.add_signal_handler(number, on_signal, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda received, _: loop.call_soon_threadsafe(on_signal, received))
