"""The network addresses that a query connects to: named when they do not answer, and tried before a query starts.

Kafka's client waits for minutes for a broker that is down. Whether one listens takes a few seconds to find out.
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
from sqlstream.spark.secrets import Secrets

LONGEST_SECONDS = 5.0
"""How long an address may take to accept a connection."""

MOST_SERVERS = 16
"""Brokers of one list that are tried."""

BROKERS = "kafka.bootstrap.servers"

_ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d{1,5})")
"""An entry of `kafka.bootstrap.servers`, as Kafka's client reads it."""

_UNKNOWN_HOST = (
    re.compile(r'Invalid host name: .*?destination host is: "?(?P<host>[\w.-]+)', re.DOTALL),
    re.compile(r"UnknownHostException: (?P<host>[\w.-]+)"),
)
_NO_ANSWER = re.compile(r"Call From \S+ to (?P<address>\S+) failed on (?:connection|socket timeout) exception")
"""How Java and Hadoop say that a server is not there (org.apache.hadoop.net.NetUtils)."""


@dataclass(frozen=True)
class Endpoint:
    """What a source or sink connects to: what messages call it, its format, its addresses and where they are given."""

    what: str
    format: str
    addresses: tuple[tuple[str, int], ...]
    location: Location

    @property
    def text(self) -> str:
        """The addresses, as they are written."""
        return ", ".join(f"{host}:{port}" for host, port in self.addresses)


class UnreachableError(Exception):
    """No address of `endpoint` accepts a connection; the message says why."""

    def __init__(self, endpoint: Endpoint, why: str) -> None:
        self.endpoint = endpoint
        super().__init__(why)


def endpoints_of(compiled: CompiledProject, model: CompiledModel, secrets: Secrets) -> tuple[Endpoint, ...]:
    """Returns what the query of `model` connects to, as far as Spark's own formats and Kafka tell."""
    return tuple(found for found in _endpoints(compiled, model, secrets) if found.addresses)


def _endpoints(compiled: CompiledProject, model: CompiledModel, secrets: Secrets) -> Iterator[Endpoint]:
    for table in compiled.sources_of(model.unique_id):
        place = table.places.get(f"options.{BROKERS}", table.places.get("options", table.location))
        name = f"source `{table.full_name}`"
        yield Endpoint(name, table.format, _addresses(table.format, table.options, secrets), place)
    output = model.output
    if output is not None:
        sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
        place = sink.places.get(f"options.{BROKERS}", sink.location)
        addresses = _addresses(output.format, output.options, secrets)
        yield Endpoint(f"sink `{output.sink}`", output.format, addresses, place)


def _addresses(format_name: str, options: Mapping[str, OptionValue], secrets: Secrets) -> tuple[tuple[str, int], ...]:
    given = {name.lower(): value for name, value in secrets.resolve_all(options).items()}
    entries = ":".join(given.get(name, "") for name in format_of(format_name).address_options).split(",")
    found = (_ADDRESS.fullmatch(entry.strip()) for entry in entries)
    return tuple((match["host"], int(match["port"])) for match in found if match)


def host_fix(said: str) -> str | None:
    """Returns what to do where an error of Java's says that a host does not exist or does not answer; it names it."""
    unknown = next(filter(None, (pattern.search(said) for pattern in _UNKNOWN_HOST)), None)
    if unknown is not None:
        return f"fix the host name: `{unknown['host']}` cannot be resolved"
    silent = _NO_ANSWER.search(said)
    return None if silent is None else f"fix the address, or start the server: `{silent['address']}` does not respond"


def check_brokers(endpoints: Iterable[Endpoint]) -> None:
    """Connects to one broker of each list. Raises: UnreachableError for the first list of which none answers."""
    for endpoint in endpoints:
        if endpoint.format == "kafka":
            _check(endpoint)


def _check(endpoint: Endpoint) -> None:
    tried = endpoint.addresses[:MOST_SERVERS]
    with ThreadPoolExecutor(len(tried), "broker") as pool:
        failures = list(pool.map(_failure, tried))
    if all(failure is not None for failure in failures):
        raise UnreachableError(endpoint, "; ".join(dict.fromkeys(filter(None, failures))))


def _failure(address: tuple[str, int]) -> str | None:
    """Why nothing can be reached at an address, None where something listens there."""
    try:
        socket.create_connection(address, timeout=LONGEST_SECONDS).close()
    except OSError as error:
        reason = f"no response within {LONGEST_SECONDS:g} s" if isinstance(error, TimeoutError) else error.strerror
        return f"{address[0]}:{address[1]}: {reason or error}"
    return None
