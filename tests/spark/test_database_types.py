"""What the drivers of databases say about tables: those in Python, for Spark Connect, say the same as JDBC's."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sqlstream.project.databases.jdbc_options import DRIVER_CLASSES, dialect_of
from sqlstream.project.databases.logins import read_login
from sqlstream.spark.writing.databases.database import FoundColumn
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from tests.services.connect_server import connector_jars
from tests.services.database_server import PASSWORD, USER, DatabaseServer

drivers = pytest.importorskip(
    "sqlstream.spark.writing.databases.python_drivers", reason="the drivers in Python are an extra"
)
pytest.importorskip("pg8000", reason="the drivers in Python need the extra `databases`")

POSTGRES = """
create domain cents as numeric(9, 2); create schema if not exists other; create type other.mood as enum ('a');
create table every (c1 int, c2 bigint, c3 smallint, c4 real, c5 double precision, c6 numeric, c7 numeric(10, 3),
  c8 numeric(5, -2), c9 varchar, c10 varchar(7), c11 char(3), c12 text, c13 boolean, c14 bytea, c15 date, c16 timestamp,
  c17 timestamptz(3), c18 time, c19 interval, c20 jsonb, c21 json, c22 uuid, c23 inet, c24 int[], c25 cents,
  c26 other.mood, c27 serial, c28 bigserial, c29 smallserial, c30 int generated always as identity, c31 "char", c32 name,
  c33 xml, c34 bit(3), c35 money, "Quoted ""c36" text, c37 oid, c38 varchar(9)[], c39 numeric(3, 3), primary key (c1, c10))
"""
MARIADB = """
create table every (c1 int, c2 bigint, c3 smallint, c4 mediumint, c5 tinyint, c6 tinyint(1), c7 boolean,
  c8 int unsigned, c9 bigint unsigned, c10 tinyint unsigned, c11 year, c12 float, c13 double, c14 decimal,
  c15 decimal(10, 3), c16 decimal(5, 2) unsigned, c17 varchar(7), c18 char(3), c19 text, c20 tinytext, c21 mediumtext,
  c22 longtext, c23 varchar(9) character set latin1, c24 char(4) collate utf8mb4_bin, c25 bit(1), c26 bit(8),
  c27 binary(3), c28 varbinary(9), c29 blob, c30 tinyblob, c31 mediumblob, c32 longblob, c33 date, c34 datetime,
  c35 datetime(6), c36 timestamp null, c37 time, c38 enum('aa', 'b'), c39 set('x', 'y'), c40 uuid, c41 inet6,
  c42 int zerofill, `Quo``ted` int, c43 int auto_increment primary key, c44 real, c45 float(7, 3), c46 varchar(3000) unique,
  c47 int invisible)
"""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """A session with all drivers."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    started = builder.config("spark.jars", connector_jars(*DRIVER_CLASSES)).getOrCreate()
    yield started
    started.stop()


@pytest.mark.slow
def test_certificates_are_verified(postgres: DatabaseServer, tmp_path: Path) -> None:
    """A driver in Python accepts the certificate of a known issuer, and with `verify-full` only for the host's name."""
    key, certificate = (postgres.folder / name for name in ("server.key", "server.pem"))
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    named = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *named], capture_output=True, check=True)
    for path in (key, certificate):
        shutil.chown(path, postgres.folder.owner())
        path.chmod(0o600 if path == key else 0o644)
    postgres.run(f"alter system set ssl_cert_file = '{certificate}'")
    postgres.run(f"alter system set ssl_key_file = '{key}'")
    postgres.run("alter system set ssl = on")
    (ca := tmp_path / "ca.pem").write_bytes(certificate.read_bytes())
    postgres.restart()

    def encrypted(**options: str) -> str | None:
        given = {"url": postgres.url, "user": USER, "password": PASSWORD, **options}
        given["url"] = given["url"].replace("127.0.0.1", given.pop("host", "127.0.0.1"))
        dialect = dialect_of("jdbc", given)
        assert dialect is not None
        with closing(drivers.open_connection(dialect, read_login(dialect, given))) as connection:
            ((found,),) = connection.all("select ssl from pg_stat_ssl where pid = pg_backend_pid()")
            return str(found)

    try:
        known = {"sslrootcert": str(ca)}
        assert [encrypted(), encrypted(sslmode="disable"), encrypted(sslmode="require")] == ["t", "f", "t"]
        assert encrypted(sslmode="verify-ca", **known) == "t"
        assert encrypted(sslmode="verify-full", host="localhost", **known) == "t"
        with pytest.raises(drivers.DriverError, match="CERTIFICATE_VERIFY_FAILED"):
            encrypted(sslmode="verify-full", **known)
        with pytest.raises(drivers.DriverError, match="CERTIFICATE_VERIFY_FAILED"):
            encrypted(sslmode="verify-ca", sslrootcert="/etc/ssl/certs/ca-certificates.crt")
    finally:
        postgres.run("alter system reset ssl")
        postgres.restart()


@pytest.mark.slow
@pytest.mark.parametrize("driver", DRIVER_CLASSES)
def test_python_drivers_find_the_columns_that_jdbc_finds(
    session: SparkSession, driver: str, request: pytest.FixtureRequest
) -> None:
    """Names, types, digits, lengths and numbered columns are the same, and so are values and errors."""
    server: DatabaseServer = request.getfixturevalue("postgres" if driver == "postgresql" else "mariadb")
    server.run(POSTGRES if driver == "postgresql" else MARIADB)
    url = server.url.replace("mariadb", driver) if driver == "mysql" else server.url
    options = {"url": url, "user": USER, "password": PASSWORD}
    dialect = dialect_of("jdbc", options)
    assert dialect is not None
    database = JdbcDatabase(dialect, "every", session, options, str)
    query = "select 1, true, null, 'é', cast('2024-01-02' as date), 1.50"

    with closing(database.connect()) as jdbc:
        found, values = jdbc.find_table("every"), jdbc.all(query)
    with closing(drivers.open_connection(dialect, read_login(dialect, options))) as python:
        columns: tuple[FoundColumn, ...] = python.columns("every")
        python_values = python.all(query)
        with pytest.raises(drivers.DriverError) as missing:
            python.columns("no_such_table")

    assert found is not None
    assert columns == found.columns
    assert list(map(list, python_values)) == list(map(list, values))
    assert missing.value.state[:5] == ("42P01" if driver == "postgresql" else "42S02")
