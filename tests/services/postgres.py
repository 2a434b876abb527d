"""A PostgreSQL server for tests, from Debian's package `postgresql`."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from tests.services.database_server import (
    DATABASE,
    PASSWORD,
    USER,
    DatabaseServer,
    find_program,
    new_folder,
    server_user,
)
from tests.services.service_process import LOOPBACK, ServiceProcess, free_ports

PACKAGE = "postgresql"


def start_postgres() -> DatabaseServer:
    """Starts a server with the database and user `shop`. Raises: NotInstalledError."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, postgres = (find_program(name, PACKAGE, folders) for name in ("initdb", "postgres"))
    psql = find_program("psql", PACKAGE, folders)
    user = server_user("postgres")
    folder = new_folder(user)
    (secret := folder / "password").write_text(PASSWORD)
    secret.chmod(0o644)
    (port,) = free_ports(1)
    data = folder / "data"
    login = ["-U", USER, "-A", "scram-sha-256", "--pwfile", str(secret)]
    made = [str(initdb), "-D", str(data), *login, "-N", "-E", "UTF8", "--locale", "C"]
    subprocess.run(made, user=user, capture_output=True, check=True, cwd="/")
    settings = {"listen_addresses": LOOPBACK, "unix_socket_directories": folder, "max_connections": 50}
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    command = [str(postgres), "-D", str(data), "-p", str(port), *options]
    process = ServiceProcess(command, port, folder / "server.log", user=user)
    process.start()
    client = [str(psql), "-h", LOOPBACK, "-p", str(port), "-U", USER, "-AtX", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-c"]
    server = DatabaseServer(
        f"jdbc:postgresql://{LOOPBACK}:{port}/{DATABASE}", process, folder, client, {"PGPASSWORD": PASSWORD}
    )
    first = replace(server, client=[*client[:-1], "-d", "postgres", "-c"])
    first.wait()
    first.run(f"create database {DATABASE}")
    return server
