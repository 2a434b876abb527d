"""Real database servers for tests: on loopback, with a free port, a folder and a database of their own."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.services.service_process import LOOK_SECONDS, START_SECONDS, ServiceProcess

USER, PASSWORD, DATABASE = "shop", "canary-4711-password", "shop"


class NotInstalledError(Exception):
    """The programs of a server are not installed; the message names the Debian package."""


@dataclass(frozen=True)
class DatabaseServer:
    """A running server: its JDBC URL without a password, its process, its folder, and its command-line client."""

    url: str
    process: ServiceProcess
    folder: Path
    client: Sequence[str]
    env: dict[str, str]

    def sink(self, name: str, driver: str = "") -> str:
        """Returns the entry of sinks.yml for tables of this server, with the password in SQLSTREAM_SECRET_DATABASE.
        `driver` is the name of another driver than the server's own.
        """
        url = self.url.replace("mariadb", driver) if driver else self.url
        return (
            f"  - name: {name}\n    format: jdbc\n    options:\n      url: '{url}'\n      user: {USER}\n"
            "      password: \"{{ env_var('SQLSTREAM_SECRET_DATABASE') }}\"\n      dbtable: '{{ model.name }}'\n"
        )

    def run(self, sql: str) -> list[list[str]]:
        """Runs SQL with the server's own client, and returns the values of all rows as text."""
        done = self._ask(sql)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.splitlines()]

    def _ask(self, sql: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **self.env}
        return subprocess.run([*self.client, sql], env=env, capture_output=True, text=True, check=False)

    def drop_tables(self) -> None:
        """Removes all tables and views of the database."""
        if "postgres" in self.url:
            self.run("drop schema public cascade; create schema public; grant usage on schema public to public")
            return
        names = f"select table_name, table_type from information_schema.tables where table_schema = '{DATABASE}'"
        for table, kind in self.run(names):
            self.run(f"drop {'view' if kind == 'VIEW' else 'table'} {table}")

    def client_process(self, sql: str) -> subprocess.Popen[str]:
        """Starts the client with SQL that runs for a while, such as one that holds a lock."""
        return subprocess.Popen([*self.client, sql], env={**os.environ, **self.env}, stdout=subprocess.PIPE, text=True)

    def wait(self) -> None:
        """Waits until the server answers queries; its port is open before."""
        deadline = time.monotonic() + START_SECONDS
        while self._ask("select 1").returncode != 0:
            assert time.monotonic() < deadline
            time.sleep(LOOK_SECONDS)

    def restart(self) -> None:
        """Kills the server, as a crash does, and starts it again."""
        self.process.stop(signal.SIGKILL)
        self.process.start()
        self.wait()

    def stop(self) -> None:
        """Stops the server and removes its data."""
        self.process.stop(signal.SIGINT if "postgres" in self.url else signal.SIGTERM)
        shutil.rmtree(self.folder, ignore_errors=True)


def find_program(name: str, package: str, folders: Sequence[Path] = ()) -> Path:
    """Returns the path of a program. Raises: NotInstalledError."""
    found = next((folder / name for folder in folders if (folder / name).exists()), None) or shutil.which(name)
    if found is None:
        raise NotInstalledError(f"{name} is not installed: apt-get install {package}")
    return Path(found)


def server_user(name: str) -> str | None:
    """Returns the user that runs a server: `name` if this process is root, which the servers refuse, otherwise None."""
    return name if os.geteuid() == 0 else None


def new_folder(user: str | None) -> Path:
    """Returns a new folder that `user` owns; the folders of pytest are closed to other users."""
    folder = Path(tempfile.mkdtemp(prefix="sqlstream-database-"))
    if user is not None:
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
    return folder
