"""What a run must never do: show a secret, listen on the network, run another Python, print Java stack traces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, descendants, sockets, wait_for

CANARY = "canary-7f3a9c-do-not-show"
LISTEN = "0A"
"""The state of a listening socket in /proc/net/tcp (include/net/tcp_states.h of Linux)."""


@pytest.mark.slow
def test_no_file_and_no_line_contains_a_secret(orders: ProjectFolder) -> None:
    """No file that a run leaves and no line that it prints contains a secret, although options of source, sink and
    target contain it and Spark raises an error about one.
    """
    secret = "{{ env_var('SQLSTREAM_SECRET_CANARY') }}"
    orders.write(
        {
            "project.yml": (orders.root / "project.yml")
            .read_text()
            .replace(
                "storage: store",
                f'storage: store, spark: {{spark.hadoop.canary: "{secret}", spark.canary: "{secret}"}}',
            ),
            "models/_more.yml": "sources:\n  - name: s\n    tables:\n      - {name: t, format: json, path: in/orders, "
            f'schema: id int, options: {{canary: "{secret}", timestampFormat: "{secret}"}}}}\n'
            f'sinks:\n  - {{name: out, format: json, path: out, options: {{canary: "{secret}"}}}}\n'
            f'  - {{name: bad, format: parquet, path: bad, options: {{compression: "{secret}"}}}}\n',
            "models/good.sql": "{{ config(sink='out') }} select * from {{ source('s', 't') }}",
            "models/poor.sql": "{{ config(sink='bad') }} select * from {{ source('s', 't') }}",
        }
    )

    process = orders.command("run", "--available-now", env={"SQLSTREAM_SECRET_CANARY": CANARY})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1
    assert "good" in out
    assert "*****" in out
    assert CANARY not in out
    left = [path for path in orders.root.rglob("*") if path.is_file()]
    assert len(left) > 20
    assert [str(path) for path in left if CANARY.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_no_secret_reaches_sql(orders: ProjectFolder) -> None:
    """SQL cannot read a secret: neither the process environment nor Spark's variables contain one."""
    orders.write(
        {
            "models/all.sql": "{{ config(sink='table') }} select '${env:SQLSTREAM_SECRET_CANARY}' as a, "
            "reflect('java.lang.System', 'getenv', 'SQLSTREAM_SECRET_CANARY') as b from {{ source('shop', 'orders') }}"
        }
    )

    process = orders.command("run", "--available-now", env={"SQLSTREAM_SECRET_CANARY": CANARY})
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, out
    assert "all (10 rows)" in out
    assert CANARY not in out


@pytest.mark.slow
def test_stdout_has_only_json_lines(orders: ProjectFolder) -> None:
    """With JSON output stdout has only JSON lines; a console sink prints to stderr."""
    orders.write(
        {
            "sinks.yml": "sinks:\n  - {name: screen, format: console}\n",
            "models/all.sql": "{{ config(sink='screen') }} select id from {{ source('shop', 'orders') }}",
        }
    )
    command = [sys.executable, "-m", "sqlstream", "run", "--available-now", "--log-format", "json"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(command, cwd=orders.root, env=env, capture_output=True, text=True, check=False)

    assert all(json.loads(line)["event"] for line in done.stdout.splitlines())
    assert "Batch: 1" in done.stderr


@pytest.mark.slow
def test_a_missing_secret_is_a_finding_before_anything_starts(orders: ProjectFolder) -> None:
    """A missing secret is a finding at the sink that names the variable, before anything starts."""
    orders.write(
        {
            "models/_more.yml": "sinks:\n  - name: out\n    format: json\n    path: out\n"
            "    options: {k: \"{{ env_var('SQLSTREAM_SECRET_NONE') }}\"}\n",
            "models/good.sql": "{{ config(sink='out') }} select * from {{ source('shop', 'orders') }}",
        }
    )

    process = orders.command("run", "--available-now")
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1
    assert "[missing-env-var]" in out
    assert "SQLSTREAM_SECRET_NONE" in out
    assert not (orders.root / "store/queries").exists()


def test_nothing_listens_beyond_loopback(orders: ProjectFolder) -> None:
    """Every listening socket of the command and its children is bound to 127.0.0.1."""
    orders.write({"models/all.sql": "{{ config(sink='lake') }} select * from {{ source('shop', 'orders') }}"})
    process = orders.command("run")
    wait_for(process, "all batch 1:")

    addresses = listening_addresses(process.pid)
    process.terminate()
    process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert addresses
    assert addresses <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.mark.slow
def test_errors_have_no_java_stack_traces(orders: ProjectFolder) -> None:
    """An analysis error and a failing batch take three lines each, without stack traces, JSON dumps or repeated SQL."""
    orders.write(
        {
            "models/poor.sql": "{{ config(sink='nowhere') }} select raise_error(kind) as x from {{ source('shop', 'orders') }}"
        }
    )
    failing = orders.command("run", "--available-now")
    ran, _ = failing.communicate(timeout=LONGEST_WAIT_SECONDS)
    orders.write(
        {
            "models/poor.sql": "{{ config(sink='nowhere') }} select array_contains(array(id), array(id)) as n from {{ source('shop', 'orders') }}"
        }
    )
    refused = orders.command("run", "--available-now")
    printed, _ = refused.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert (failing.returncode, refused.returncode) == (1, 1)
    assert "[query-failed]" in ran
    version, found, *lines = printed.splitlines()
    assert "sqlstream" in version
    assert "Found 1 model" in found
    assert lines[0].startswith("models/poor.sql:1:37: [sql-analysis]")
    assert len(lines) == 3
    for text in (ran, printed):
        assert "\tat " not in text
        assert "Traceback" not in text
        assert "org.apache.spark.sql.catalyst" not in text
        assert "WARN" not in text.replace("WARN=", "")


@pytest.mark.slow
def test_workers_run_the_python_of_the_command(tmp_path: Path) -> None:
    """Python UDFs run under the command's virtual environment, even if it is not activated."""
    script = tmp_path / "which.py"
    script.write_text(
        "import sys\n"
        "from pyspark.sql.functions import udf\n"
        "from sqlstream.location import Location\n"
        "from sqlstream.project.values import Target\n"
        "from sqlstream.spark.secrets import Secrets\n"
        "from sqlstream.spark.jvm.session import SparkLaunch, start_spark\n"
        f"target = Target(name='t', master='local[1]', storage='.', location=Location('p'))\n"
        f"run = start_spark(target, Secrets({{}}), SparkLaunch('t', {str(tmp_path / 'w')!r}, lambda line: None))\n"
        "@udf('string')\n"
        "def interpreter(_):\n"
        "    return sys.executable\n"
        "print('WORKER', run.session.range(1).select(interpreter('id')).collect()[0][0])\n"
    )
    path = "/usr/bin:/bin"
    env = {**{k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}, "PATH": path}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2])}

    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env=env, cwd=tmp_path, check=False
    )

    assert f"WORKER {sys.executable}" in done.stdout, done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"which.py", "w"}


def listening_addresses(root: int) -> set[str]:
    """Returns the addresses on which the process `root` and its descendants listen."""
    inodes = {inode for pid in descendants(root) for inode in sockets(pid)}
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/{root}/net/{name}").read_text().splitlines()[1:]:
            parts = line.split()
            if parts[3] == LISTEN and parts[9] in inodes:
                found.add(address(parts[1].split(":")[0]))
    return found


def address(text: str) -> str:
    """Parses an address of /proc/net/tcp or tcp6: hexadecimal words in the machine's byte order."""
    import ipaddress

    raw = b"".join(bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8))
    found = ipaddress.ip_address(raw)
    mapped = getattr(found, "ipv4_mapped", None)
    return f"::ffff:{mapped}" if mapped else str(found)
