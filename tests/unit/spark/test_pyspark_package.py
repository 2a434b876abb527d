"""PySpark packages with which sqlstream cannot start Spark: none, old ones, and clients of Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from sqlstream.errors import Finding
from sqlstream.spark.jvm.pyspark_package import check_client, check_spark

ROOT = Path(__file__).parents[3]
INSTALLED = Path(pyspark.__path__[0])
SITE = INSTALLED.parent

REPAIR = "pip uninstall databricks-connect, then pip install --force-reinstall pyspark"
CANNOT_START = "Spark cannot start on this machine"

PROJECT = """name: shop
targets:
  here: {master: 'local[1]', storage: store}
  far: {remote: 'sc://127.0.0.1:1', storage: store}
default_target: here
"""
FILES = {
    "project.yml": PROJECT,
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: id int}]}]\n",
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: out}]\n",
    "models/plain.sql": "{{ config(sink='lake') }}\nselect id from {{ source('shop', 'orders') }}\n",
}


@dataclass(frozen=True)
class Environment:
    """A Python environment with the packages of this one, but another PySpark, and a project."""

    folder: Path

    @property
    def site(self) -> Path:
        """The folder of its packages."""
        return self.folder / "site"

    def install(self, version: str, databricks: str = "", without: tuple[str, ...] = ()) -> None:
        """Installs PySpark as `version`, without some of its files, and as a part of databricks-connect."""
        package = self.site / "pyspark"
        package.mkdir()
        for path in INSTALLED.iterdir():
            if path.name not in (*without, "__pycache__", "version.py"):
                (package / path.name).symlink_to(path)
        (package / "version.py").write_text(f'# a license\n__version__: str = "{version}"\n')
        if databricks:
            (package / "dbconnect_version.py").write_text("")
            about = self.site / f"databricks_connect-{databricks}.dist-info"
            about.mkdir()
            (about / "METADATA").write_text(f"Name: databricks-connect\nVersion: {databricks}\n")

    def python(self, *arguments: str) -> tuple[int, str]:
        """Runs Python, and returns its exit code and output."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        done = subprocess.run(
            [sys.executable, "-S", *arguments],  # -S: not the packages of this Python
            cwd=self.folder / "project",
            env={**env, "PYTHONPATH": f"{ROOT}{os.pathsep}{self.site}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def command(self, *arguments: str) -> tuple[int, str]:
        """Runs sqlstream."""
        return self.python("-m", "sqlstream", *arguments)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """An environment without PySpark."""
    made = Environment(tmp_path)
    made.site.mkdir()
    for path in SITE.iterdir():
        if not path.name.startswith(("pyspark", "databricks")):
            (made.site / path.name).symlink_to(path)
    for name, text in FILES.items():
        file = tmp_path / "project" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return made


def first_finding(text: str) -> list[str]:
    """Returns the lines of the first finding. Another one is about Java, which unit tests do not have."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("["))
    return lines[first : first + 3]


@pytest.mark.parametrize("has_rest", [False, True])
def test_without_pyspark(environment: Environment, has_rest: bool) -> None:
    """Without PySpark, `compile` works, and a run says what to install, also if pip has left a folder."""
    if has_rest:
        (environment.site / "pyspark" / "logs").mkdir(parents=True)

    assert environment.command("compile")[0] == 0
    code, printed = environment.command("run")
    assert (code, first_finding(printed)) == (
        1,
        [
            "[spark-missing] PySpark is not installed",
            f"  why: this Python environment ({sys.executable}) does not have it",
            "  fix: install it: pip install pyspark",
        ],
    )


@pytest.mark.parametrize("arguments", [(), ("--target", "far")])
def test_an_old_client_of_databricks(environment: Environment, arguments: tuple[str, ...]) -> None:
    """A release of databricks-connect for an early Spark is refused with and without `remote`; `compile` warns."""
    environment.install("3.5.2", databricks="16.1.7", without=("jars",))

    code, printed = environment.command("compile", *arguments)
    assert (code, "untested-spark] Spark 3.5.2 is earlier than" in printed) == (0, True)
    code, printed = environment.command("run", *arguments)
    assert (code, first_finding(printed)) == (
        1,
        [
            "[spark-too-old] PySpark 3.5.2 is too old",
            "  why: sqlstream needs 4.1 or later, and databricks-connect 16.1.7 has replaced PySpark with its 3.5.2",
            f"  fix: install databricks-connect 18 or later, with Python 3.12; or {REPAIR}",
        ],
    )


@pytest.mark.parametrize("without", [("jars",), ()])
@pytest.mark.parametrize("command", ["run", "test", "debug", "compile --check"])
def test_a_client_of_databricks(environment: Environment, without: tuple[str, ...], command: str) -> None:
    """databricks-connect cannot start Spark here, also where PySpark's jars are left."""
    environment.install("4.4.0.dev0", databricks="19.3.0", without=without)
    (environment.folder / "project/models/_plain.yml").write_text(
        "unit_tests: [{name: one, model: plain, given: [{input: \"source('shop', 'orders')\", rows: [{id: 1}]}],"
        " expect: {rows: [{id: 1}]}}]\n"
    )

    code, printed = environment.command(*command.split())

    assert code == 1, printed
    assert f"{CANNOT_START}, because databricks-connect has replaced PySpark" in printed
    assert "databricks-connect 19.3.0 is only a client of Spark Connect" in printed
    assert "fix: use a target with `remote`" in printed
    assert "bug in sqlstream" not in printed


def test_debug_of_a_target_with_a_client_of_databricks(environment: Environment) -> None:
    """With `remote`, `debug` names the package, and goes on to ask the server."""
    environment.install("4.4.0.dev0", databricks="19.3.0", without=("jars", "bin"))

    code, printed = environment.command("debug", "--target", "far")

    assert code == 1
    assert "OK     PySpark   4.4.0.dev0 of databricks-connect 19.3.0, newer than the tested versions" in printed
    assert "the server does not accept connections" in printed


@pytest.mark.parametrize(
    ("without", "why"),
    [(("jars", "bin"), "has no bin/spark-submit that can be executed"), (("jars",), "has no folder jars")],
)
def test_a_package_without_spark(environment: Environment, without: tuple[str, ...], why: str) -> None:
    """A PySpark without its jars is not enough for a target with a master."""
    environment.install(pyspark.__version__, without=without)

    code, printed = environment.command("run")

    assert (code, first_finding(printed)) == (
        1,
        [
            f"[spark-missing] {CANNOT_START}, because the installed PySpark has none",
            f"  why: {environment.site}/pyspark {why}",
            "  fix: install all of PySpark: pip install --force-reinstall pyspark; or use a target with `remote`",
        ],
    )


@pytest.mark.parametrize("arguments", [("run",), ("run", "--target", "far"), ("compile", "--check", "--target", "far")])
def test_a_package_with_the_client_only(environment: Environment, arguments: tuple[str, ...]) -> None:
    """The package pyspark-client, which lacks modules, is refused with and without `remote`; they fail to load."""
    environment.install("4.2.0", without=("jars", "bin", "core"))

    code, printed = environment.command(*arguments)

    assert (code, first_finding(printed)) == (
        1,
        [
            "[spark-missing] the installed PySpark lacks modules",
            f"  why: {environment.site}/pyspark has no core/context.py, as if the package were pyspark-client",
            "  fix: install all of PySpark: pip uninstall pyspark-client, then pip install --force-reinstall pyspark",
        ],
    )


def test_pyspark_in_a_zip_file(environment: Environment) -> None:
    """The version is also known of PySpark in a zip file, as YARN gives it to the driver."""
    with zipfile.ZipFile(environment.site.parent / "pyspark.zip", "w") as packed:
        packed.writestr("pyspark/__init__.py", "")
        packed.writestr("pyspark/version.py", "__version__: str = '4.2.0'\n")
    program = (
        "import sys; sys.path.insert(0, '../pyspark.zip')\n"
        "from sqlstream.compiler.spark_versions import installed_spark; print(installed_spark())"
    )

    assert environment.python("-c", program) == (0, "4.2.0\n")


def found_with_home(home: Path | str) -> Finding | None:
    """Returns the finding with this SPARK_HOME."""
    return check_spark({"SPARK_HOME": str(home)})


def spark_home(folder: Path, version: str) -> Path:
    """Creates a folder with the names of the files of a Spark."""
    for name in ("bin/spark-submit", f"jars/spark-core_2.13-{version}.jar"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch(0o755)
    return folder


def test_the_installed_package_is_fine() -> None:
    """Nothing is found about the PySpark of this environment, also if SPARK_HOME names its folder."""
    assert [check_client(), check_spark({}), found_with_home(INSTALLED)] == [None, None, None]


def test_a_spark_home_without_spark(tmp_path: Path) -> None:
    """A SPARK_HOME that does not exist, or has no Spark, is named, and so is an empty one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/spark-submit").touch(0o644)
    places: list[Path | str] = [tmp_path / "none", tmp_path, ""]
    found = [finding for finding in map(found_with_home, places) if finding is not None]

    assert [finding.code for finding in found] == ["spark-missing"] * 3
    assert found[1].why == f"SPARK_HOME is `{tmp_path}`, which has no bin/spark-submit that can be executed"
    assert found[1].fix == "set SPARK_HOME to the folder of a Spark, or unset it to use that of PySpark"


def test_an_old_spark_home(tmp_path: Path) -> None:
    """A SPARK_HOME with a Spark that sqlstream does not know is refused, one with another tested version is not."""
    old = found_with_home(spark_home(tmp_path / "old", "3.5.6"))

    assert found_with_home(spark_home(tmp_path / "other", "4.1.0")) is None
    assert found_with_home(spark_home(tmp_path / "later", "4.4.0-SNAPSHOT")) is None
    assert old is not None
    assert (old.code, old.message) == ("spark-too-old", "Spark 3.5.6 is too old")
    assert old.why == f"SPARK_HOME is `{tmp_path}/old`, and sqlstream needs 4.1 or later"


def test_a_spark_that_runs_already() -> None:
    """If another program, such as spark-submit, has started Spark, its folder does not matter."""
    assert check_spark({"SPARK_HOME": "/nowhere", "PYSPARK_GATEWAY_PORT": "1"}) is None
