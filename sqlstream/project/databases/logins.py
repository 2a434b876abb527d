"""What the Python driver of a database needs of the options of a sink, whose `url` is one for JDBC.

The rows of a batch still go through the JDBC driver, so options that only tune that one need no counterpart here. An
option that says which server to trust, or what a session does, has one or is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from getpass import getuser
from pathlib import Path
from urllib.parse import unquote_plus

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.jdbc_options import SESSION, connection_properties

PYTHON_DRIVERS = {"postgresql": "pg8000", "mariadb": "pymysql", "mysql": "pymysql"}
"""The modules of the drivers by the name of the dialect: packages of the extra `databases`."""


class Tls(Enum):
    """How a connection is encrypted, and which certificates of a server it accepts."""

    OFF = "off"
    PREFERRED = "if the server can"
    UNVERIFIED = "any certificate"
    VERIFIED = "a known issuer"
    FULL = "a known issuer, and the name of the host"


@dataclass(frozen=True)
class Login:
    """How to reach and enter a database. `ca` is a PEM file with the certificates of known issuers, empty for those of
    the machine. `session` are statements that set up a session. `application` is the name of the program in PostgreSQL,
    and `startup` are parameters of a session there.
    """

    host: str
    port: int
    database: str
    user: str
    password: str = field(repr=False)
    tls: Tls
    ca: str
    connect_seconds: float | None
    read_seconds: float | None
    keep_alive: bool
    fetches_key: bool = False
    """Whether a server without TLS may send the key with which the password is encrypted. Anyone in between could."""
    session: tuple[str, ...] = ()
    application: str = ""
    startup: Mapping[str, str] = field(default_factory=dict)


class UnmappedOptionError(ValueError):
    """The Python driver has no counterpart of an option. `fix` says what to do instead."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.fix = fix


_URL = re.compile(
    r"jdbc:\w+:(?://(?P<servers>[^/?]*)(?:/|(?=\?)|\Z))?(?P<database>[^?]*)(?:\?(?P<query>.*))?", re.DOTALL
)
_SERVER = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^:,()\[\]]*)(?::(?P<port>\d+))?")

_TUNES_JDBC = {
    "postgresql": """
    adaptivefetch adaptivefetchmaximum adaptivefetchminimum allowencodingchanges assumeminserverversion autosave
    binarytransfer binarytransferdisable binarytransferenable cleanupsavepoints databasemetadatacachefields
    databasemetadatacachefieldsmib defaultrowfetchsize disablecolumnsanitiser escapesyntaxcallmode
    groupstartupparameters hideunprivilegedobjects logservererrordetail loggerfile loggerlevel
    logunclosedconnections maxresultbuffer maxsendbuffersize preferquerymode preparethreshold
    preparedstatementcachequeries preparedstatementcachesizemib querytimeout receivebuffersize rewritebatchedinserts
    sendbuffersize sslresponsetimeout stringtype tcpnodelay unknownlength
    """,
    "mariadb": """
    allowmultiqueries autoreconnect cacheprepstmts callablestmtcachesize characterencoding createdatabaseifnotexist
    cachecallablestmts defaultfetchsize disablepipeline dumpqueriesonexception
    includeinnodbstatusindeadlockexceptions includethreaddumpindeadlockexceptions jdbccomplianttruncation log
    maxquerysizetolog prepstmtcachesize prepstmtcachesqllimit rewritebatchedstatements tcprcvbuf tcpsndbuf
    tinyint1isbit transformedbitisboolean usebulkstmts usebulkstmtsforinserts usecompression usemysqlmetadata
    usepipelineauth usereadaheadinput useserverprepstmts useunicode yearisdatetype zerodatetimebehavior
    """,
    "mysql": """
    allowmultiqueries autoreconnect cacheprepstmts cacheresultsetmetadata
    cacheserverconfiguration callablestmtcachesize characterencoding cachecallablestmts connectionattributes
    defaultfetchsize dumpqueriesonexception elidesetautocommits emulateunsupportedpstmts
    includeinnodbstatusindeadlockexceptions includethreaddumpindeadlockexceptions jdbccomplianttruncation
    largerowsizethreshold logger logslowqueries maintaintimestats maxquerysizetolog prepstmtcachesize
    prepstmtcachesqllimit profilesql rewritebatchedstatements tcpnodelay tcprcvbuf tcpsndbuf tinyint1isbit
    transformedbitisboolean usecompression usecursorfetch uselocalsessionstate useserverprepstmts useunicode
    yearisdatetype zerodatetimebehavior
    """,
}
"""The options, in lower case, that only say how a JDBC driver sends statements and reads values."""

_PORTS = {"postgresql": 5432, "mariadb": 3306, "mysql": 3306}

_KERBEROS = frozenset({"keytab", "principal", "refreshkrb5config", "connectionprovider"})
"""Options with which Spark logs in, in lower case."""

_LAST_PORT, _LONGEST = 65_535, 2**31 - 1
"""The last port, and the longest time limit of JDBC drivers, in s or ms."""

_USE_MASTER = "or use a target with a master, which connects through JDBC"


def read_login(dialect: Dialect, options: Mapping[str, str]) -> Login:
    """Returns what the options of a sink say about the connection. Raises: UnmappedOptionError."""
    given = {name.lower(): value for name, value in options.items()}
    url = _URL.fullmatch(given.get("url", ""))
    if url is None or (url["servers"] is None and re.search("[:/]", url["database"])):
        raise UnmappedOptionError(
            "its `url` does not name one server", "use a URL such as jdbc:postgresql://host:5432/shop"
        )
    kerberos = sorted(given.keys() & _KERBEROS)
    if kerberos:
        raise UnmappedOptionError(f"it does not support `{kerberos[0]}`", f"use a password; {_USE_MASTER}")
    if given.get("driver", dialect.driver) != dialect.driver:
        raise UnmappedOptionError("`driver` names another class than the usual one", f"remove it; {_USE_MASTER}")
    servers = url["servers"] or ""
    login, at, servers = servers.rpartition("@")
    if at and dialect.name != "mysql":
        raise UnmappedOptionError("its `url` has a user", "set `user` and `password` in the options of the sink")
    found = {name.lower(): value for name, value in connection_properties(dialect, options).items()}
    found = _with_url(found, _parameters(dialect, url["query"] or ""))
    if at:
        user, colon, password = login.partition(":")
        given = {"user": unquote_plus(user)} | ({"password": unquote_plus(password)} if colon else {})
        found = _with_url(found, given)
    server = _SERVER.fullmatch(servers)
    if server is None:
        raise UnmappedOptionError("its `url` has several servers", f"name one server; {_USE_MASTER}")
    if int(server["port"] or 0) > _LAST_PORT:
        raise UnmappedOptionError(f"its `url` has the port {server['port']}", f"use one up to {_LAST_PORT}")
    has_password = "password=" in (url["query"] or "").lower()
    left = _Options(dialect, found, names_are_secret=has_password)
    user = left.take("user") or _user_of_machine()
    tls, ca = _TLS[dialect.name](left)
    connect, read = left.seconds("connectTimeout"), left.seconds("socketTimeout")
    enter = left.seconds("loginTimeout") if dialect.name == "postgresql" else None
    result = Login(
        host=(server["host"] or "localhost").strip("[]"),
        port=int(server["port"] or _PORTS[dialect.name]),
        database=_decoded(dialect, url["database"]) or (user if dialect.name == "postgresql" else ""),
        user=user,
        password=left.take("password"),
        tls=tls,
        ca=ca,
        connect_seconds=min(filter(None, (connect, enter)), default=None),
        read_seconds=read,
        keep_alive=left.take("tcpKeepAlive").lower() == "true",
        fetches_key=dialect.name != "postgresql" and left.is_true("allowPublicKeyRetrieval"),
        session=_session(left),
        application=left.take("ApplicationName") if dialect.name == "postgresql" else "",
        startup=_startup(left) if dialect.name == "postgresql" else {},
    )
    left.check_empty()
    return result


def _user_of_machine() -> str:
    """Returns the user of this process, as JDBC drivers do without the option. Raises: UnmappedOptionError."""
    try:
        return getuser()
    except (KeyError, OSError):
        raise UnmappedOptionError("it has no `user`", "set `user` in the options of the sink") from None


def _decoded(dialect: Dialect, text: str) -> str:
    return text if dialect.name == "mariadb" else unquote_plus(text)


def _parameters(dialect: Dialect, query: str) -> dict[str, str]:
    parts = (part.partition("=") for part in query.split("&") if part)
    return {_decoded(dialect, name).lower(): _decoded(dialect, value) for name, _, value in parts}


def _with_url(options: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, str]:
    """Returns the options with those of the URL. Raises: UnmappedOptionError if they differ."""
    for name, value in parameters.items():
        if options.get(name, value) != value:
            raise UnmappedOptionError(f"its `url` and its options have different values of {name}", "set it once")
    return {**options, **parameters}


class _Options:
    """The options that have not been read so far, by name in lower case."""

    def __init__(self, dialect: Dialect, options: Mapping[str, str], *, names_are_secret: bool) -> None:
        self.dialect, self._names_are_secret = dialect, names_are_secret
        tuning = set(_TUNES_JDBC[dialect.name].split())
        self._left = {name: value for name, value in options.items() if name not in tuning}

    def take(self, name: str, default: str = "") -> str:
        """Returns the value of an option, and removes it."""
        return self._left.pop(name.lower(), default)

    def is_true(self, name: str, default: str = "false") -> bool:
        """Returns whether an option is switched on, and removes it."""
        return self.take(name, default).lower() in ("", "true", "1", "yes")

    def seconds(self, name: str) -> float | None:
        """Returns a time limit, None without one. PostgreSQL's driver has them in seconds, the others in ms."""
        text = self.take(name) or "0"
        if not text.isdecimal() or int(text) > _LONGEST:
            raise UnmappedOptionError(f"`{name}` is `{text}`", f"use a whole number up to {_LONGEST}")
        return (int(text) if self.dialect.name == "postgresql" else int(text) / 1000) or None

    def check_empty(self) -> None:
        """Raises: UnmappedOptionError for an option that has not been read."""
        for name in self._left:
            # a password with `&` in a URL ends there, and its rest looks like an option
            shown = "an option in its `url`" if self._names_are_secret else f"the option {name}"
            raise UnmappedOptionError(f"it does not support {shown}", f"remove it; {_USE_MASTER}")


def _chosen_tls(name: str, value: str, known: Mapping[str, Tls]) -> Tls:
    found = known.get(value.lower())
    if found is None:
        raise UnmappedOptionError(f"`{name}` is `{value}`", f"use one of {', '.join(known)}")
    return found


def _postgresql_tls(options: _Options) -> tuple[Tls, str]:
    default = "verify-full" if "ssl" in options._left and options.is_true("ssl") else "prefer"  # noqa: SLF001
    mode = options.take("sslmode", default)
    modes = {
        "disable": Tls.OFF,
        "allow": Tls.PREFERRED,
        "prefer": Tls.PREFERRED,
        "require": Tls.UNVERIFIED,
        "verify-ca": Tls.VERIFIED,
        "verify-full": Tls.FULL,
    }
    tls, ca = _chosen_tls("sslmode", mode, modes), options.take("sslrootcert")
    if tls in (Tls.VERIFIED, Tls.FULL) and not ca:
        ca = str(Path.home() / ".postgresql" / "root.crt")  # as the JDBC driver does
    return tls, ca


def _mariadb_tls(options: _Options) -> tuple[Tls, str]:
    trusts = options.is_true("trustServerCertificate")
    wanted, mode = options.is_true("useSsl"), options.take("sslMode")
    if wanted and mode:  # the JDBC driver ignores sslMode then
        raise UnmappedOptionError("`useSsl` and `sslMode` are both set", "remove `useSsl`")
    default = ("trust" if trusts else "verify-full") if wanted else "disable"
    ca = options.take("serverSslCert").removeprefix("file:")
    if ca.startswith(("classpath:", "-----")):
        raise UnmappedOptionError(
            "`serverSslCert` is not the path of a file", f"write the certificate to a PEM file; {_USE_MASTER}"
        )
    modes = {
        **dict.fromkeys(("disable", "disabled"), Tls.OFF),
        **dict.fromkeys(("trust", "required"), Tls.UNVERIFIED),
        **dict.fromkeys(("verify-ca", "verify_ca"), Tls.VERIFIED),
        **dict.fromkeys(("verify-full", "verify_full", "verify_identity"), Tls.FULL),
    }
    return _chosen_tls("sslMode", mode or default, modes), ca


def _mysql_tls(options: _Options) -> tuple[Tls, str]:
    uses, requires = options.is_true("useSSL", "true"), options.is_true("requireSSL")
    verifies = options.is_true("verifyServerCertificate")
    default = "disabled" if not uses else "verify_ca" if verifies else "required" if requires else "preferred"
    modes = {
        "disabled": Tls.OFF,
        "preferred": Tls.PREFERRED,
        "required": Tls.UNVERIFIED,
        "verify_ca": Tls.VERIFIED,
        "verify_identity": Tls.FULL,
    }
    return _chosen_tls("sslMode", options.take("sslMode", default), modes), ""


_TLS = {"postgresql": _postgresql_tls, "mariadb": _mariadb_tls, "mysql": _mysql_tls}


def _session(options: _Options) -> tuple[str, ...]:
    if options.dialect.name == "postgresql":
        return ()
    variables = options.take(SESSION)
    if ";" in variables:
        raise UnmappedOptionError(f"`{SESSION}` has a semicolon", f"separate variables by commas; {_USE_MASTER}")
    chosen = (f"SET SESSION {variables}",) if variables else ()
    # both JDBC drivers do so, or MySQL would cut what is too long
    return (*chosen, "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')")


def _startup(options: _Options) -> dict[str, str]:
    named = {"search_path": options.take("currentSchema"), "options": options.take("options")}
    fixed = {"client_encoding": "UTF8", "DateStyle": "ISO", "TimeZone": "UTC"}
    return {**fixed, **{name: value for name, value in named.items() if value}}
