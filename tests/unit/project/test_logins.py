"""What a driver in Python gets of the options of a sink, whose `url` is one for JDBC."""

from __future__ import annotations

import pytest

from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.databases.logins import PYTHON_DRIVERS, Login, Tls, UnmappedOptionError, read_login

POSTGRESQL, MARIADB, MYSQL = (f"jdbc:{name}://db.internal" for name in PYTHON_DRIVERS)


def login(url: str, **options: str) -> Login:
    """Returns what the driver of a database gets of a URL and options."""
    given = {"url": url, "user": "ann", "password": "x", **options}
    dialect = dialect_of("jdbc", given)
    assert dialect is not None
    return read_login(dialect, given)


def refusal(url: str, **options: str) -> str:
    """Returns why a URL and options are refused, with what to do instead."""
    with pytest.raises(UnmappedOptionError) as refused:
        login(url, **options)
    return f"{refused.value}; {refused.value.fix}"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{POSTGRESQL}:5433/shop", ("db.internal", 5433, "shop")),
        (f"{POSTGRESQL}/a%20shop?sslmode=disable", ("db.internal", 5432, "a shop")),
        (f"{POSTGRESQL}/", ("db.internal", 5432, "ann")),
        (POSTGRESQL, ("db.internal", 5432, "ann")),
        ("jdbc:postgresql:shop", ("localhost", 5432, "shop")),
        ("jdbc:postgresql://[::1]:5433/shop", ("::1", 5433, "shop")),
        (f"{MARIADB}/a%20shop", ("db.internal", 3306, "a%20shop")),
        (f"{MYSQL}?sslMode=DISABLED", ("db.internal", 3306, "")),
    ],
)
def test_the_server_and_the_database(url: str, expected: tuple[str, int, str]) -> None:
    """Host, port and database are read as the JDBC driver reads them, with its defaults."""
    found = login(url)

    assert (found.host, found.port, found.database) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (POSTGRESQL, Tls.PREFERRED),
        (f"{POSTGRESQL}/shop?sslmode=disable", Tls.OFF),
        (f"{POSTGRESQL}/shop?sslmode=require", Tls.UNVERIFIED),
        (f"{POSTGRESQL}/shop?sslmode=verify-ca&sslrootcert=/etc/ca.pem", Tls.VERIFIED),
        (f"{POSTGRESQL}/shop?sslmode=verify-full", Tls.FULL),
        (f"{POSTGRESQL}/shop?ssl=true", Tls.FULL),
        (f"{POSTGRESQL}/shop?ssl=false", Tls.PREFERRED),
        (MARIADB, Tls.OFF),
        (f"{MARIADB}/shop?useSSL=true", Tls.FULL),
        (f"{MARIADB}/shop?useSsl=true&trustServerCertificate=true", Tls.UNVERIFIED),
        (f"{MARIADB}/shop?sslMode=trust", Tls.UNVERIFIED),
        (f"{MARIADB}/shop?sslMode=verify-ca", Tls.VERIFIED),
        (f"{MARIADB}/shop?sslMode=verify-full", Tls.FULL),
        (MYSQL, Tls.PREFERRED),
        (f"{MYSQL}/shop?useSSL=false", Tls.OFF),
        (f"{MYSQL}/shop?requireSSL=true", Tls.UNVERIFIED),
        (f"{MYSQL}/shop?verifyServerCertificate=true", Tls.VERIFIED),
        (f"{MYSQL}/shop?sslMode=VERIFY_IDENTITY", Tls.FULL),
    ],
)
def test_encryption(url: str, expected: Tls) -> None:
    """Each mode of a JDBC driver accepts the same servers, also by default."""
    assert login(url).tls is expected


def test_certificates_of_known_issuers() -> None:
    """They are those of the file that the JDBC driver reads, or those that the machine trusts."""
    assert login(POSTGRESQL, sslmode="verify-full", sslrootcert="/etc/ca.pem").ca == "/etc/ca.pem"
    assert login(POSTGRESQL, sslmode="verify-full").ca.endswith("/.postgresql/root.crt")
    assert login(MARIADB, sslMode="verify-full", serverSslCert="file:/etc/ca.pem").ca == "/etc/ca.pem"
    assert login(MYSQL, sslMode="VERIFY_CA").ca == ""


def test_time_limits_have_the_unit_of_the_jdbc_driver() -> None:
    """PostgreSQL's are seconds, those of MariaDB and MySQL milliseconds; 0 is no limit."""
    found = login(POSTGRESQL, connectTimeout="10", loginTimeout="5", socketTimeout="0")
    assert (found.connect_seconds, found.read_seconds, found.keep_alive) == (5, None, True)
    found = login(f"{MARIADB}/shop?connectTimeout=1500", socketTimeout="20000", tcpKeepAlive="false")
    assert (found.connect_seconds, found.read_seconds, found.keep_alive) == (1.5, 20, False)


def test_sessions() -> None:
    """A session gets the schema, the parameters and the variables of the options, and MySQL never cuts a value."""
    found = login(f"{POSTGRESQL}/shop?currentSchema=sales&options=-c%20work_mem=1MB", ApplicationName="etl")
    assert (found.startup["search_path"], found.startup["options"], found.application) == (
        *("sales", "-c work_mem=1MB"),
        "etl",
    )
    found = login(MARIADB, sessionVariables="sql_mode='ANSI_QUOTES'")
    assert found.session[0] == "SET SESSION sql_mode='ANSI_QUOTES'"
    assert "STRICT_TRANS_TABLES" in found.session[-1]


def test_who_logs_in() -> None:
    """The user can be in the options, in the parameters of the URL, or before the host in MySQL's; the password is not
    shown.
    """
    given = {"url": f"{MARIADB}/shop?user=ben&password=a=b"}
    dialect = dialect_of("jdbc", given)
    assert dialect is not None
    found = read_login(dialect, given)
    assert (found.user, found.password, "a=b" in repr(found)) == ("ben", "a=b", False)
    found = login("jdbc:mysql://eve:p%40ss@db.internal/shop", user="eve", password="p@ss")
    assert (found.host, found.user, found.password) == ("db.internal", "eve", "p@ss")


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("jdbc:postgresql://a,b/shop", {}, "several servers"),
        ("jdbc:mariadb:sequential://a/shop", {}, "not name one server"),
        ("jdbc:mysql://address=(host=a)(port=1)/shop", {}, "several servers"),
        ("jdbc:postgresql://eve:x@a/shop", {}, "has a user"),
        (f"{POSTGRESQL}/shop?user=eve", {}, "different values of user"),
        (f"{POSTGRESQL}/shop?targetServerType=primary", {}, "not support the option targetservertype"),
        (POSTGRESQL, {"sslkey": "key.pk8"}, "not support the option sslkey"),
        (POSTGRESQL, {"sslmode": "strict"}, "`sslmode` is `strict`; use one of disable, allow"),
        (POSTGRESQL, {"driver": "software.amazon.jdbc.Driver"}, "`driver` names another class"),
        (MARIADB, {"useSsl": "true", "sslMode": "disable"}, "`useSsl` and `sslMode` are both set"),
        (f"{MARIADB}?password=abc&defSECRET", {"password": "abc"}, "does not support an option in its `url`"),
        (MARIADB, {"connectTimeout": "-1"}, "`connectTimeout` is `-1`; use a whole number"),
        (f"{MARIADB}:99999", {}, "its `url` has the port 99999"),
        (MARIADB, {"sessionVariables": "a=1;b=2"}, "`sessionVariables` has a semicolon"),
        (POSTGRESQL, {"sessionVariables": "a=1"}, "does not support the option sessionvariables"),
        (MARIADB, {"keytab": "shop.keytab"}, "does not support `keytab`"),
        (MARIADB, {"serverSslCert": "classpath:ca.pem"}, "`serverSslCert` is not the path of a file"),
        (MARIADB, {"connectTimeout": "soon"}, "`connectTimeout` is `soon`; use a whole number"),
        (MYSQL, {"trustCertificateKeyStoreUrl": "file:ca.jks"}, "does not support the option"),
    ],
)
def test_what_a_python_driver_cannot_do_is_refused(url: str, options: dict[str, str], words: str) -> None:
    """An option that says whom to trust, or what a session does, is never ignored."""
    assert words in refusal(url, **options)


@pytest.mark.parametrize("url", [POSTGRESQL, MARIADB, MYSQL])
def test_options_that_tune_a_jdbc_driver_need_no_counterpart(url: str) -> None:
    """Spark's own options, and those about statements, are for the JDBC driver, which still writes the rows."""
    tuning = {"prepareThreshold": "1"} if url is POSTGRESQL else {"cachePrepStmts": "true"}

    assert login(url, batchsize="100", dbtable="t", numPartitions="2", **tuning).host == "db.internal"


def test_a_user_in_the_url_needs_no_password_there() -> None:
    """MySQL's driver takes the password from the options then, and the defaults of sqlstream are no conflict."""
    url = "jdbc:mysql://ada@db.internal/shop?TCPKEEPALIVE=false"

    found = login(url, user="ada", password="tulip")

    assert (found.user, found.password, found.keep_alive) == ("ada", "tulip", False)
