"""A MariaDB server for tests, from Debian's package `mariadb-server`."""

from __future__ import annotations

import subprocess
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

PACKAGE = "mariadb-server"

_FOLDERS = [Path("/usr/sbin"), Path("/usr/local/sbin")]


def start_mariadb() -> DatabaseServer:
    """Starts a server with the database and user `shop`. Raises: NotInstalledError."""
    install = find_program("mariadb-install-db", PACKAGE)
    server, client = find_program("mariadbd", PACKAGE, _FOLDERS), find_program("mariadb", PACKAGE)
    user = server_user("mysql")
    folder = new_folder(user)
    (port,) = free_ports(1)
    data = folder / "data"
    subprocess.run(
        [install, "--no-defaults", f"--datadir={data}", "--skip-test-db", "--auth-root-authentication-method=normal"],
        user=user,
        capture_output=True,
        check=True,
        cwd="/",
    )
    (first := folder / "first.sql").write_text(
        f"create database if not exists {DATABASE};\n"
        f"create user if not exists '{USER}'@'%' identified by '{PASSWORD}';\n"
        f"grant all on *.* to '{USER}'@'%' with grant option;\n"
    )
    first.chmod(0o644)
    options = {
        "datadir": data,
        "port": port,
        "bind-address": LOOPBACK,
        "socket": folder / "server.sock",
        "pid-file": folder / "server.pid",
        "init-file": first,
        "character-set-server": "utf8mb4",
    }
    command = [str(server), "--no-defaults", *(f"--{name}={value}" for name, value in options.items())]
    process = ServiceProcess(command, port, folder / "server.log", user=user)
    process.start()
    asked = [str(client), "--no-defaults", "-h", LOOPBACK, "-P", str(port), "-u", USER, "-D", DATABASE, "-BN", "-e"]
    url = f"jdbc:mariadb://{LOOPBACK}:{port}/{DATABASE}"
    started = DatabaseServer(url, process, folder, asked, {"MYSQL_PWD": PASSWORD})
    started.wait()
    return started
