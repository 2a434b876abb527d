"""The servers of a query: a query starts only if its brokers respond, and the ids of its
topics and tables show whether one was deleted and created again.

Kafka's client waits minutes for a broker that is down; this check takes seconds.
"""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.location import Location
from sqlstream.project.files.paths import join
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, iceberg_table_id
from sqlstream.spark.reading.kafka_ends import topic_ids
from sqlstream.spark.reading.sources import delta_detail, delta_name
from sqlstream.spark.secrets import Secrets
from sqlstream.state.ledger import InputIds

logger = logging.getLogger("sqlstream.inputs")

CONNECT_SECONDS = 5.0
"""Time for an address to accept a connection."""

MAX_BROKERS = 16
"""Brokers to try per list."""

BROKERS = "kafka.bootstrap.servers"

_ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d{1,5})")
"""An entry of `kafka.bootstrap.servers`, with the syntax of Kafka's client."""


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
    for output in compiled.outputs_of(model):
        sink = next(sink for sink in compiled.project.sinks if sink.name == output.sink)
        place = sink.locations.get(f"options.{BROKERS}", sink.location)
        addresses = addresses_of(output.format, output.options, secrets)
        yield Endpoint(f"sink `{output.sink}`", output.format, addresses, place)


def source_endpoint(table: SourceTable, secrets: Secrets) -> Endpoint:
    """Returns the addresses of a source, none if its format has none or they are not understood."""
    place = table.locations.get(f"options.{BROKERS}", table.locations.get("options", table.location))
    return Endpoint(table.described, table.format, addresses_of(table.format, table.options, secrets), place)


def addresses_of(format_name: str, options: Mapping[str, OptionValue], secrets: Secrets) -> tuple[tuple[str, int], ...]:
    """Returns the addresses in the options of a format, none if it has none or they are not understood."""
    values = {name.lower(): value for name, value in secrets.resolve_all(options).items()}
    # a list of brokers in one option, or a host and a port in two
    entries = ":".join(values.get(name, "") for name in format_of(format_name).address_options).split(",")
    matches = (_ADDRESS.fullmatch(entry.strip()) for entry in entries)
    return tuple((match["host"], int(match["port"])) for match in matches if match)


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


def input_ids(compiled: CompiledProject, model: CompiledModel, session: SparkSession, secrets: Secrets) -> InputIds:
    """Returns the ids of what the streaming sources of `model` read now, by source and by topic.

    What cannot be asked is left out: a server that does not respond, or does not allow it, is reported when the query
    reads from it.
    """
    found: dict[str, Mapping[str, str]] = {}
    for table in compiled.tables_of(model.unique_id):
        ask = _IDS.get(table.format)
        if ask is None or table.mode != "stream" or secrets.missing(table.options, table.location):
            continue
        try:
            path = table.path and join(str(compiled.project.root), table.path)
            ids = ask(table.model_copy(update={"path": path}), session, secrets)
        # an invalid option fails at the start; py4j raises TypeError for a class that a Spark does not have
        except (UnreachableError, ValueError, TypeError, AttributeError, *SPARK_ERRORS):
            logger.info("the ids of %s are unknown", table.full_name, exc_info=True)
            continue
        found[table.full_name] = ids
    return found


def _topic_ids(table: SourceTable, session: SparkSession, secrets: Secrets) -> dict[str, str]:
    endpoint = source_endpoint(table, secrets)
    check_brokers([endpoint] if endpoint.addresses else [])
    return topic_ids(session, secrets.resolve_all(table.options))


def _delta_id(table: SourceTable, session: SparkSession, _secrets: Secrets) -> dict[str, str]:
    return {table.table or table.path or "": str(delta_detail(session, delta_name(table, ""))["id"])}


def _iceberg_id(table: SourceTable, session: SparkSession, _secrets: Secrets) -> dict[str, str]:
    return {table.table or table.path or "": iceberg_table_id(session, table.table, table.path)}


_IDS: Mapping[str, Callable[[SourceTable, SparkSession, Secrets], dict[str, str]]] = {
    "kafka": _topic_ids,
    "delta": _delta_id,
    "iceberg": _iceberg_id,
}
