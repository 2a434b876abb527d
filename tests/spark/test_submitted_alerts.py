"""Alerts of submitted runs: each has a new driver without the project's `logs/`, and continues those of the last one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.find_spark_home import _find_spark_home

from sqlstream.app.session import start_driver
from sqlstream.app.submit.archive import pack
from sqlstream.spark.secrets import Secrets
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

HOURS = (
    "{{ config(sink='lake', alerts={'state_rows_over': 2}) }}\n"
    "select /*+ WATERMARK(ts, '1 second') */ window(ts, '1 hour') as hour, id, count(*) as n\n"
    "from {{ source('shop', 'orders') }} group by window(ts, '1 hour'), id\n"
)


def submitted(shop: ProjectFolder, folder: Path) -> str:
    """Runs the program of the driver with spark-submit in a new folder, and returns what it prints."""
    folder.mkdir()
    archive = pack(shop.root, "shop", Secrets({}), with_sqlstream=True)
    (folder / archive.name).write_bytes(archive.content)
    (folder / "driver.py").write_bytes(Path(start_driver.__file__).read_bytes())
    submit = [f"{_find_spark_home()}/bin/spark-submit", "--master", "local[2]", "--driver-memory", "600m"]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.sql.session.timeZone=UTC"]
    command = [*submit, *settings, "driver.py", archive.name, "run", "--available-now"]
    public = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env = {**public, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=LONGEST_WAIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_next_submitted_run_continues_an_alert(
    folder: ProjectFolder, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The second run does not raise the alert again, and the third resolves it. Each message has the same id."""
    elsewhere = tmp_path_factory.mktemp("cluster")
    sent = elsewhere / "alerts.jsonl"
    target = {"master": "local[2]", "storage": f"{elsewhere}/store"}
    alerts = {"notify": [{"name": "log", "command": ["sh", "-c", f"cat >> '{sent}'"]}]}
    sources = (folder.root / "sources.yml").read_text().replace("in/orders", f"{folder.root}/in/orders")
    folder.write(
        {
            "project.yml": json.dumps({"name": "shop", "alerts": alerts, "targets": {"prod": target}}),
            "sources.yml": sources,
            "models/hours.sql": HOURS,
        }
    )
    shop = [{"id": number, "amount": 1, "ts": "2024-01-01T00:30:00Z"} for number in range(4)]
    folder.rows("in/orders/0.json", shop[:3], modified=0)
    printed = submitted(folder, elsewhere / "first")
    (raised,) = (json.loads(line) for line in sent.read_text().splitlines())
    assert (raised["alert"], raised["state"]) == ("state_rows_over", "raised"), printed

    folder.rows("in/orders/1.json", shop[3:], modified=1)
    printed = submitted(folder, elsewhere / "second")
    assert len(sent.read_text().splitlines()) == 1, printed
    assert "state_rows_over" in printed  # the end of the run says that it is open

    folder.rows("in/orders/2.json", [{**shop[0], "ts": "2024-01-01T02:30:00Z"}], modified=2)
    printed = submitted(folder, elsewhere / "third")
    _, resolved = (json.loads(line) for line in sent.read_text().splitlines())
    assert (resolved["state"], resolved["alert_id"]) == ("resolved", raised["alert_id"]), printed
    assert resolved["since"] == raised["since"]
