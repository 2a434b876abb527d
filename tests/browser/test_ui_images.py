"""The images of docs/ui.md, which tests make so that they can be renewed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.services.kafka_broker import start_kafka
from tests.services.kafka_topics import create_topic
from tests.support.browsing import ROOT, OpenPage
from tests.support.ui_project import page_of, served_project

SHOTS = {
    "overview": ("#/", 1280, 1000),
    "charts": ("#/query/orders_000/charts?range=24h", 1280, 1000),
    "batches": ("#/query/payments_011/batches?order=slowest", 1280, 760),
    "sql": ("#/query/orders_000/sql", 1280, 620),
    "columns": ("#/query/orders_000/columns", 1280, 760),
    "output": ("#/query/shipping_007/output", 1280, 900),
    "checks": ("#/query/orders_000/checks", 1280, 760),
    "history": ("#/query/payments_011/history", 1280, 760),
    "failed": ("#/query/clicks_003/charts?range=24h", 1280, 900),
    "phone-overview": ("#/", 390, 844),
    "phone-charts": ("#/query/orders_000/charts?range=24h", 390, 844),
}
TOPICS = ("nest-updates", "nest-sightings", "cdc-customers")
RUNS = (
    ("run", "--available-now", "-s", "nest_feed", "cdc_feed"),
    ("run", "--available-now", "-s", "nest_archive", "nest_sightings"),
    ("run", "--for", "20s", "-s", "wordcount"),
    ("run", "--available-now", "--exclude", "wordcount", "nest_feed", "cdc_feed"),
    ("test",),
)
"""The commands that run all examples: recordings go to Kafka before the queries that read them."""

EXAMPLE_FILES = ("project.yml", "sources.yml", "sinks.yml", "models", "seeds", "macros", "tests/data", "tests/models")
EXAMPLE_SHOTS = {
    "overview": ("#/", 1280, 1000),
    "charts": ("#/query/device_windows/charts", 1280, 1000),
    "batches": ("#/query/device_windows/batches?order=slowest", 1280, 760),
    "sql": ("#/query/cloudtrail_hourly/sql", 1280, 620),
    "columns": ("#/query/cloudtrail_hourly/columns", 1280, 760),
    "output": ("#/query/device_windows/output", 1280, 900),
    "checks": ("#/query/cloudtrail_hourly/checks", 1280, 760),
    "history": ("#/query/device_windows/history", 1280, 760),
    "phone-overview": ("#/", 390, 844),
    "phone-charts": ("#/query/device_windows/charts", 390, 844),
}
SETTLED = "() => !document.querySelector('.loading, [aria-busy=true]')"
MOST_BYTES = 200_000


def is_settled(page: Page) -> None:
    """Waits until everything is drawn."""
    expect(page.locator(".rows .row, .tab-body > *").first).to_be_visible()
    expect(page.locator(".connection")).to_have_text("Live")
    page.wait_for_function(SETTLED)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


@pytest.mark.skipif(
    not os.environ.get("SQLSTREAM_SCREENSHOTS"), reason="set SQLSTREAM_SCREENSHOTS=1 to renew the images"
)
def test_images_of_200_queries(tmp_path: Path, open_page: OpenPage) -> None:
    """Writes images of each view of 200 queries, in both themes."""
    with served_project(tmp_path, 200, 60_000) as served:
        take_images(open_page, served.url, "ui", SHOTS)


@pytest.mark.skipif(
    not os.environ.get("SQLSTREAM_SCREENSHOTS"), reason="set SQLSTREAM_SCREENSHOTS=1 to renew the images"
)
def test_images_of_the_examples(tmp_path: Path, open_page: OpenPage) -> None:
    """Runs all examples with their servers, and their unit tests, and writes images of each view in both themes."""
    for name in EXAMPLE_FILES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    with servers(tmp_path / "kafka") as variables:
        for command in RUNS:
            given = ("--vars", json.dumps(variables)) if command[0] == "run" else ()
            subprocess.run([sys.executable, "-m", "sqlstream", *command, *given], cwd=tmp_path, check=True)
    with page_of(tmp_path) as url:
        take_images(open_page, url, "examples", EXAMPLE_SHOTS)


@contextmanager
def servers(folder: Path) -> Iterator[dict[str, object]]:
    """Starts a broker with the topics of the examples, and the server of lines. Yields the variables with their ports."""
    lines = [sys.executable, "-u", str(ROOT / "tests/data/serve_lines.py"), "--port", "0", "--rate", "0"]
    with subprocess.Popen(lines, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        port = int(serving.stdout.readline().rsplit(":", 1)[1])
        broker = start_kafka(folder)
        try:
            for topic in TOPICS:
                create_topic(broker.servers, topic)
            yield {"kafka_brokers": broker.servers, "wordcount_port": port}
        finally:
            broker.stop()
            serving.terminate()


def take_images(open_page: OpenPage, url: str, prefix: str, shots: Mapping[str, tuple[str, int, int]]) -> None:
    """Writes an image of each view in both themes to docs/images."""
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        for name, (view, width, height) in shots.items():
            page = open_page(url + view, width=width, height=height, theme=theme)
            is_settled(page)
            file = images / f"{prefix}-{name}-{theme}.png"
            page.screenshot(path=file)
            page.context.close()
            assert file.stat().st_size < MOST_BYTES
