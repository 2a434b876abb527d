"""Asks brokers, schema registries and databases whether they answer, and have what sources and sinks name.

Reads no rows, joins no consumer group, and creates nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NoAnswerError
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import SparkSession

from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.location import Location, Place
from sqlstream.numbers import plural
from sqlstream.project.configuration.documents import SchemaRegistry
from sqlstream.project.databases.jdbc_options import server_of
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, is_connect
from sqlstream.spark.reading.endpoints import Endpoint, UnreachableError, addresses_of, check_brokers
from sqlstream.spark.reading.kafka_ends import describe_topics
from sqlstream.spark.reading.message_formats.schema_registry import RegistryError, registry_client
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.spark.writing.writers import database_of

ANSWER_SECONDS = 45.0
"""How long all servers together can take to answer. Each question has a shorter limit."""

ASKED_AT_A_TIME = 8

SHOWN_TOPICS = 10
"""The most topics of a broker that a finding names."""

UNREACHABLE = "unreachable"
"""The code of a warning: the server could not be asked."""


@dataclass(frozen=True)
class Server:
    """A server that a source or sink (`what`, as in messages) names. `kind` is `kafka`, `registry` or `database`.

    `ask` returns in words what was found. It raises FindingsError: an error if something does not exist that a run
    needs, a warning if the server could not be asked.
    """

    kind: str
    what: str
    location: Location
    ask: Callable[[], str]


@dataclass(frozen=True)
class _Declared:
    """A source or sink with its options, and the locations of its keys."""

    what: str
    options: Mapping[str, OptionValue]
    location: Location
    locations: Mapping[str, Location]
    is_sink: bool

    def location_of(self, *options: str) -> Location:
        """Returns the location of the first of these options (in lower case) that it has, otherwise its own."""
        found = {name.lower().removeprefix("options."): place for name, place in self.locations.items()}
        return next((found[name] for name in options if name in found), found.get("options", self.location))


def servers_of(
    compiled: CompiledProject, session: SparkSession, secrets: Secrets, nodes: Collection[str] | None = None
) -> Iterator[Server]:
    """Yields the servers of the sources and models with the unique ids `nodes`; by default those of all sources, and of
    all sinks to which models write. Over Connect: none, because they are asked from the JVM.
    """
    if is_connect(session):
        return
    for table in compiled.project.sources:
        is_chosen = nodes is None or source_id(compiled.project.name, table) in nodes
        if not is_chosen or table.corrupt_of is not None:  # it reads the messages of another source
            continue
        declared = _Declared(table.described, table.options, table.location, table.locations, is_sink=False)
        yield from _servers(table.format, declared, session, secrets)
        registry = table.messages.registry if table.messages is not None else None
        if registry is not None:
            place = table.locations.get("schema_registry", table.location)
            yield Server("registry", table.described, place, partial(_ask_registry, declared, registry, place, secrets))
    sinks = {sink.name: sink for sink in compiled.project.sinks}
    chosen = [model for model in compiled.models.values() if nodes is None or model.unique_id in nodes]
    outputs = [output for model in chosen for output in compiled.outputs_of(model)]
    unique = {(each.sink, str(sorted(each.options.items()))): each for each in outputs}
    for output in unique.values():
        sink = sinks[output.sink]
        declared = _Declared(f"sink {quoted(output.sink)}", output.options, sink.location, sink.locations, is_sink=True)
        yield from _servers(output.format, declared, session, secrets)


def _servers(format_name: str, declared: _Declared, session: SparkSession, secrets: Secrets) -> Iterator[Server]:
    asks = {"kafka": ("kafka", _ask_kafka), "jdbc": ("database", _ask_database)}
    if format_name in asks:
        kind, ask = asks[format_name]
        yield Server(kind, declared.what, declared.location_of(), partial(ask, declared, session, secrets))


def ask_servers(
    servers: Sequence[Server], secrets: Secrets, seconds: float = ANSWER_SECONDS
) -> Iterator[tuple[Server, str | Finding]]:
    """Yields each server with what was found, without secrets, in their order, at the latest after `seconds`."""
    for server, answer in _answers(servers, seconds):
        if isinstance(answer, Finding):
            message, why, fix = (secrets.redact(text) for text in (answer.message, answer.why, answer.fix))
            yield server, replace(answer, message=message, why=why, fix=fix)
        else:
            yield server, secrets.redact(answer)


def _answers(servers: Sequence[Server], seconds: float) -> Iterator[tuple[Server, str | Finding]]:
    pool = ThreadPoolExecutor(ASKED_AT_A_TIME, "server")
    until = time.monotonic() + seconds
    try:
        answers = [(server, pool.submit(server.ask)) for server in servers]
        for server, answer in answers:
            try:
                yield server, answer.result(max(until - time.monotonic(), 0))
            except NoAnswerError:
                why = f"there was no answer within {seconds:g} s"
                yield server, _unreachable(server.what, why, server.location)
            except FindingsError as error:
                yield server, error.findings[0]
    finally:
        # a server that does not answer must not keep the command waiting
        pool.shutdown(wait=False, cancel_futures=True)


def _ask_kafka(declared: _Declared, session: SparkSession, secrets: Secrets) -> str:
    options = _resolved(declared, secrets)
    place = declared.location_of("kafka.bootstrap.servers")
    endpoint = Endpoint(declared.what, "kafka", addresses_of("kafka", declared.options, secrets), place)
    at = options.get("kafka.bootstrap.servers", "")
    try:
        check_brokers([endpoint] if endpoint.addresses else [])
        found = describe_topics(session, secrets.resolve_all(declared.options))
    except UnreachableError as error:
        raise FindingsError([_unreachable(declared.what, secrets.redact(str(error)), place)]) from error
    except SPARK_ERRORS as error:
        reported = error_finding(error, code=UNREACHABLE, what="", place=Place(place), secrets=secrets, fix="")
        why = secrets.redact(f"the client of the broker at {at} reports: {reported.why}")
        raise FindingsError([_unreachable(declared.what, why, place)]) from error
    missing = [name for name, partitions in found.topics.items() if not partitions]
    if missing and (not declared.is_sink or found.creates_topics is False):
        raise FindingsError([_missing_topic(declared, missing, at, found.others)])
    names = [f"{quoted(name)} ({plural(count, 'partition')})" for name, count in found.topics.items() if count]
    topics = [f"topic {', '.join(names)}"] if names else []
    topics += [f"{quoted_list(missing)} does not exist yet, and the broker may create it"] if missing else []
    if not found.topics:
        pattern = options.get("subscribepattern")
        topics = [f"no topic matches {pattern} yet"] if pattern else []
    return secrets.redact("; ".join([f"answers at {at}", *topics]))


def _missing_topic(declared: _Declared, missing: Sequence[str], at: str, others: Sequence[str]) -> Finding:
    create = f"create it, for example kafka-topics.sh --bootstrap-server {at} --create --topic {missing[0]}"
    near = did_you_mean(missing[0], others) if others else ""
    return Finding(
        "missing-topic",
        f"the topic {quoted_list(missing)} of {declared.what} does not exist",
        f"the broker at {at} has {_shown(others) if others else 'no topics that this login can see'}",
        f"{near} Or {create}" if near.startswith("did you mean") else create,
        declared.location_of("subscribe", "assign", "topic"),
    )


def _shown(topics: Sequence[str]) -> str:
    more = f" and {len(topics) - SHOWN_TOPICS} more" if len(topics) > SHOWN_TOPICS else ""
    return f"{quoted_list(topics[:SHOWN_TOPICS])}{more}"


def _ask_database(declared: _Declared, session: SparkSession, secrets: Secrets) -> str:
    options, place = _resolved(declared, secrets), declared.location_of("url")
    table = options.get("dbtable", "")
    database = database_of("jdbc", declared.options, table, session, secrets)
    at = server_of(options.get("url", ""))
    if database is None:
        return f"{at} was not asked: sqlstream knows PostgreSQL, MariaDB and MySQL"
    query = options.get("query") or (table.strip() if table.strip().startswith("(") else None)
    try:
        connection = database.with_timeouts().connect()
        try:
            if query is not None or not table:
                connection.first("SELECT 1")
                found: bool | None = None
            else:
                found = connection.find_table(table) is not None
        finally:
            connection.close()
    except DatabaseError as error:
        raise FindingsError([_unreachable(declared.what, secrets.redact(str(error)), place)]) from error
    answers = f"{database.dialect.title} answers at {at}"
    if found is None:
        return answers
    if found:
        return f"{answers}; table {quoted(table)}"
    if declared.is_sink:
        return f"{answers}; table {quoted(table)} does not exist yet, and the first run creates it"
    raise FindingsError([_missing_table(declared, table, answers)])


def _missing_table(declared: _Declared, table: str, answers: str) -> Finding:
    return Finding(
        "source-unreadable",
        f"the table {quoted(table)} of {declared.what} does not exist",
        f"{answers}, without this table, or this login may not see it",
        "fix `dbtable` of the source, with its schema, or create the table",
        declared.location_of("dbtable"),
    )


def _ask_registry(declared: _Declared, registry: SchemaRegistry, place: Location, secrets: Secrets) -> str:
    try:
        client = registry_client(registry, place, secrets)
        found = {subject: client.version_numbers(subject) for subject in registry.subjects}
    except RegistryError as error:
        raise FindingsError([_unreachable(declared.what, secrets.redact(str(error)), place)]) from error
    counts = {subject: plural(len(versions), "version") for subject, versions in found.items()}
    subjects = ", ".join(f"{quoted(subject)} ({count})" for subject, count in counts.items())
    return f"{client.shown} answers; subject {subjects}" if subjects else f"{client.shown} answers"


def _resolved(declared: _Declared, secrets: Secrets) -> dict[str, str]:
    """Returns the options with names in lower case. Raises: FindingsError for a secret that is not set."""
    missing = secrets.missing(declared.options, declared.location_of())
    if missing:
        raise FindingsError(missing)
    return {name.lower(): value for name, value in secrets.resolve_all(declared.options).items()}


def _unreachable(what: str, why: str, location: Location) -> Finding:
    return Finding(
        UNREACHABLE,
        f"{what} could not be asked",
        why,
        "start the server, or fix the address or the login",
        location,
        Severity.WARNING,
    )
