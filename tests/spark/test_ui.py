"""`run --ui` serves the page of the run while it runs."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

from tests.spark.conftest import ProjectFolder, wait_for


def get(url: str) -> Any:
    """Returns the JSON at an address."""
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def test_the_page_of_a_run(folder: ProjectFolder) -> None:
    """While the run waits for data, the page shows its batch; what it shows agrees with run_results.json."""
    rows = [{"id": number, "ts": f"2024-01-01T12:0{number}:00Z", "kind": "a", "amount": 1} for number in range(5)]
    folder.rows("in/orders/0.json", rows, modified=0)
    sql = "{{ config(sink='lake', trigger='1 second') }} select id, kind from {{ source('shop', 'orders') }}"
    test = "models: [{name: ids, data_tests: [{expression_is_true: {name: small, expression: id < 3}}]}]"
    folder.write({"models/ids.sql": sql, "models/ids.yml": test})
    process = folder.command("run", "--ui", "--ui-port", "0", "--log-format", "json", "-s", "ids")
    lines = wait_for(process, '"event": "batch"')
    url = next(found.group() for line in lines if (found := re.search(r"http://127.0.0.1:\d+/", line)))

    shown = get(f"{url}api/overview")["queries"]["ids"]
    while not shown["batches"]:  # None until the page has read the start of the query, which it does every second
        shown = get(f"{url}api/overview")["queries"]["ids"]
    results = json.loads((folder.root / "target/run_results.json").read_text())
    (entry,) = results["results"]
    names = ("unique_id", "status", "batches", "rows_in", "rows_out", "sink", "output", "restarts")
    assert {name: shown[name] for name in names} == {name: entry[name] for name in names}
    assert (shown["status"], shown["rows_in"], shown["run"]) == ("running", 5, results["metadata"]["invocation_id"])
    assert (shown["violations"], shown["data_tests"]) == (2, {"ids.small": {"passed": 3, "failed": 2}})
    assert get(f"{url}api/project")["runs"][0]["life"] == "running"
    (batch,) = get(f"{url}api/query/ids/batches")["batches"]
    assert (batch["rows_in"], batch["duration_ms"]) == (5, entry["progress"]["duration_ms"])
    assert sorted(row[0] for row in get(f"{url}api/query/ids/sample")["rows"]) == [0, 1, 2, 3, 4]
    process.terminate()
    process.communicate()
    assert process.returncode == 0
