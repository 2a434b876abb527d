"""The network addresses of a query: errors name them, and a query starts only if its brokers respond.

Kafka's client waits minutes for a broker that is down; this check takes seconds.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.location import Location
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secrets import OptionValue
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import causes_of
from sqlstream.spark.secrets import Secrets

CONNECT_SECONDS = 5.0
"""Time for an address to accept a connection."""

MAX_BROKERS = 16
"""Brokers to try per list."""

BROKERS = "kafka.bootstrap.servers"

_ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d{1,5})")
"""An entry of `kafka.bootstrap.servers`, with the syntax of Kafka's client."""

_UNKNOWN_HOST = (
    re.compile(r'Invalid host name: .*?destination host is: "?(?P<host>[\w.-]+)', re.DOTALL),
    re.compile(r"UnknownHostException: (?P<host>[\w.-]+)"),
)
_NO_ANSWER = re.compile(r"Call From \S+ to (?P<address>\S+) failed on (?:connection|socket timeout) exception")
"""Messages of Java and Hadoop about a server that cannot be reached (org.apache.hadoop.net.NetUtils)."""


@dataclass(frozen=True)
class Endpoint:
    """The addresses of a source or sink (`what`, as in messages), its format, and where they are declared."""

    what: str
    format: str
    addresses: tuple[tuple[str, int], ...]
    location: Location

    @property
    def text(self) -> str:
        """The addresses as `host:port`."""
        return ", ".join(f"{host}:{port}" for host, port in self.addresses)


class UnreachableError(Exception):
    """No address of `endpoint` accepts a connection; the message is the reason."""

    def __init__(self, endpoint: Endpoint, why: str) -> None:
        self.endpoint = endpoint
        super().__init__(why)


def endpoints_of(compiled: CompiledProject, model: CompiledModel, secrets: Secrets) -> tuple[Endpoint, ...]:
    """Returns the known addresses to which the query of `model` connects, from the options of Spark's formats."""
    return tuple(endpoint for endpoint in _endpoints(compiled, model, secrets) if endpoint.addresses)


def _endpoints(compiled: CompiledProject, model: CompiledModel, secrets: Secrets) -> Iterator[Endpoint]:
    for table in compiled.tables_of(model.unique_id):
        yield source_endpoint(table, secrets)
    for output in model.outputs:
        sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
        place = sink.places.get(f"options.{BROKERS}", sink.location)
        addresses = addresses_of(output.format, output.options, secrets)
        yield Endpoint(f"sink `{output.sink}`", output.format, addresses, place)


def source_endpoint(table: SourceTable, secrets: Secrets) -> Endpoint:
    """Returns the addresses of a source, none if its format has none or they are not understood."""
    place = table.places.get(f"options.{BROKERS}", table.places.get("options", table.location))
    return Endpoint(table.described, table.format, addresses_of(table.format, table.options, secrets), place)


def addresses_of(format_name: str, options: Mapping[str, OptionValue], secrets: Secrets) -> tuple[tuple[str, int], ...]:
    """Returns the addresses in the options of a format, none if it has none or they are not understood."""
    values = {name.lower(): value for name, value in secrets.resolve_all(options).items()}
    entries = ":".join(values.get(name, "") for name in format_of(format_name).address_options).split(",")
    matches = (_ADDRESS.fullmatch(entry.strip()) for entry in entries)
    return tuple((match["host"], int(match["port"])) for match in matches if match)


def host_fix(error: BaseException) -> str | None:
    """Returns the fix, with the name of the host, if a Java error says that a host does not exist or respond."""
    message = "\n".join(f"{cause.kind}: {cause.words}" for cause in causes_of(error))
    unknown = next(filter(None, (pattern.search(message) for pattern in _UNKNOWN_HOST)), None)
    if unknown is not None:
        return f"fix the host name: `{unknown['host']}` cannot be resolved"
    silent = _NO_ANSWER.search(message)
    return None if silent is None else f"fix the address, or start the server: `{silent['address']}` does not respond"


def check_brokers(endpoints: Iterable[Endpoint]) -> None:
    """Checks that one broker of each list responds. Raises: UnreachableError for the first list without one."""
    for endpoint in endpoints:
        if endpoint.format == "kafka":
            _check(endpoint)


def _check(endpoint: Endpoint) -> None:
    tried = endpoint.addresses[:MAX_BROKERS]
    with ThreadPoolExecutor(len(tried), "broker") as pool:
        failures = list(pool.map(_failure, tried))
    if all(failure is not None for failure in failures):
        raise UnreachableError(endpoint, "; ".join(dict.fromkeys(filter(None, failures))))


def _failure(address: tuple[str, int]) -> str | None:
    """Returns why an address cannot be reached, None if a server listens there."""
    try:
        socket.create_connection(address, timeout=CONNECT_SECONDS).close()
    except OSError as error:
        reason = f"no response within {CONNECT_SECONDS:g} s" if isinstance(error, TimeoutError) else error.strerror
        return f"{address[0]}:{address[1]}: {reason or error}"
    return None
