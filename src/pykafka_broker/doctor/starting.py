"""The broker of this machine that is to serve an address and does not yet: it recovers its logs, or waits for
a controller that leads. Another one must not be started there.

It is known by its command line, its environment and the file that these name; of other users' processes, and
other systems than Linux, less of that can be read.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from pykafka_broker.config.keys import ConfigError
from pykafka_broker.config.listeners import Endpoint
from pykafka_broker.config.settings import BrokerConfig
from pykafka_broker.config.sources import load_config
from pykafka_broker.doctor.reach import Address, Answer, Kind, StartingBroker, shown
from pykafka_broker.system.host_text import is_loopback
from pykafka_broker.system.processes import StartCommand, broker_processes, described


def starting_at(address: Address, answer: Answer) -> StartingBroker | None:
    """The process that is to listen at an address of this machine where none does; None if there is none."""
    if answer.kind is not Kind.REFUSED or not is_loopback(address[0]):
        return None
    return to_serve(address, broker_processes())


def to_serve(address: Address, processes: Iterable[StartCommand]) -> StartingBroker | None:
    """The process whose configuration has a listener for clients at this address of the machine."""
    for process in processes:
        try:
            config = _config_of(process)
        except (ConfigError, OSError, ValueError):  # written by others, or only half written
            continue
        if any(_is_at(listener, address) for listener in config.broker_listeners):
            controllers = [
                shown(("127.0.0.1" if _is_any(one.host) else one.host, one.port))
                for one in config.controller_listeners
            ]
            return StartingBroker(described(process.process_id), controllers[0] if controllers else "")
    return None


def _config_of(process: StartCommand) -> BrokerConfig:
    options = _OPTIONS.parse_known_args(process.arguments)[0]
    file = options.config and os.path.join(process.directory, options.config)
    return load_config(file=file, environ=process.environ, overrides=options.override, listen=options.listen)


def _is_any(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _is_at(listener: Endpoint, address: Address) -> bool:
    host, port = address
    is_same = listener.host == host or (is_loopback(listener.host) and is_loopback(host))
    return listener.port == port and (is_same or _is_any(listener.host))


def _options() -> argparse.ArgumentParser:
    """The options of `start` that say where it listens."""
    options = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    options.add_argument("-c", "--config")
    options.add_argument("-l", "--listen")
    options.add_argument("-o", "--override", action="append", default=[])
    return options


_OPTIONS = _options()
