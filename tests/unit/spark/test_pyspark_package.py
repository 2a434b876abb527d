"""PySpark packages with which sqlstream cannot start Spark: none, old ones, and clients of Spark Connect."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import py_compile
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from pyspark import SparkContext

from sqlstream.errors import Finding
from sqlstream.spark.jvm.pyspark_package import check_pyspark, check_spark

ROOT = Path(__file__).parents[3]
INSTALLED = Path(pyspark.__path__[0])
SITE = INSTALLED.parent

REPAIR = "pip uninstall databricks-connect, then pip install --force-reinstall pyspark"
CANNOT_START = "Spark cannot start on this machine"

FOUND = """
from sqlstream.compiler.spark_versions import installed_spark
from sqlstream.spark.jvm.pyspark_package import check_pyspark
print(installed_spark(), check_pyspark())
"""
"""A program that prints the version of PySpark, and what is wrong with it."""

PROJECT = """name: shop
targets:
  here: {master: 'local[1]', storage: store}
  far: {remote: 'sc://127.0.0.1:1', storage: store}
  yarn: {master: yarn, storage: 'hdfs://127.0.0.1:1/store'}
default_target: here
"""
FILES = {
    "project.yml": PROJECT,
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, schema: id int,"
    " path: 'hdfs://127.0.0.1:1/in'}]}]\n",
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
            if path.name not in (*without, "__pycache__", "version.py", "find_spark_home.py"):
                (package / path.name).symlink_to(path)
        (package / "version.py").write_text(f'# a license\n__version__: str = "{version}"\n')
        shutil.copy(INSTALLED / "find_spark_home.py", package)  # it looks for Spark where it is
        if databricks:
            self.install_databricks(databricks, (package / "core/context.py").read_bytes())

    def install_databricks(self, version: str, context: bytes) -> None:
        """Installs databricks-connect, except its modules, of which `context` is one."""
        about = self.site / f"databricks_connect-{version}.dist-info"
        about.mkdir()
        digest = base64.urlsafe_b64encode(hashlib.sha256(context).digest()).decode().rstrip("=")
        (about / "METADATA").write_text(f"Name: databricks-connect\nVersion: {version}\n")
        (about / "RECORD").write_text(f"pyspark/core/context.py,sha256={digest},{len(context)}\n")

    def python(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs Python, and returns its exit code and output."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        done = subprocess.run(
            [sys.executable, "-S", *arguments],  # -S: not the packages of this Python
            cwd=self.folder / "project",
            env={**env, "PYTHONPATH": f"{ROOT}{os.pathsep}{self.site}", **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def command(self, *arguments: str, **variables: str) -> tuple[int, str]:
        """Runs sqlstream."""
        return self.python("-m", "sqlstream", *arguments, **variables)


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
    assert "databricks-connect 19.3.0, which has only the client of Spark Connect" in printed
    assert "fix: use another Python environment; or run on a target with `remote`" in printed
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
    [(("jars", "bin"), "has no executable bin/spark-submit"), (("jars",), "has no folder jars")],
)
def test_a_package_without_spark(environment: Environment, without: tuple[str, ...], why: str) -> None:
    """A PySpark without its jars is not enough for a target with a master."""
    environment.install(pyspark.__version__, without=without)

    code, printed = environment.command("run")

    assert (code, first_finding(printed)) == (
        1,
        [
            f"[spark-missing] {CANNOT_START}, because the installed PySpark contains no Spark",
            f"  why: {environment.site}/pyspark {why}",
            "  fix: install the whole package: pip install --force-reinstall pyspark; or run on a target with `remote`",
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
            f"  why: {environment.site}/pyspark has no core/context.py, as in the package pyspark-client",
            "  fix: install the whole package: pip uninstall pyspark-client, then pip install --force-reinstall pyspark",
        ],
    )


@pytest.mark.parametrize("folder", ["..", "../", "./..//site/.."])
def test_pyspark_in_a_zip_file(environment: Environment, folder: str) -> None:
    """PySpark can be in a zip file, as a Spark and YARN have it, and a Spark may already run then."""
    with zipfile.ZipFile(environment.folder / "pyspark.zip", "w") as packed:
        packed.writestr("pyspark/__init__.py", "")
        packed.writestr("pyspark/version.py", "__version__: str = '4.2.0'\n")
        packed.writestr("pyspark/core/context.py", "")
    program = f"import sys; sys.path.insert(0, '{folder}/pyspark.zip')\n{FOUND}"

    assert environment.python("-c", program) == (0, "4.2.0 None\n")


def test_pyspark_without_source_code(environment: Environment) -> None:
    """A PySpark of which only bytecode is installed has the version of its package."""
    package = environment.site / "pyspark"
    for name in ("__init__", "core/context"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        py_compile.compile(str(INSTALLED / f"{name}.py"), str(package / f"{name}.pyc"))
    about = environment.site / "pyspark-4.2.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: pyspark\nVersion: 4.2.0\n")

    assert environment.python("-c", FOUND) == (0, "4.2.0 None\n")


def test_a_file_that_hides_pyspark(environment: Environment) -> None:
    """A module pyspark.py in the folder of the project is named."""
    environment.install(pyspark.__version__)
    (environment.folder / "project/pyspark.py").write_text("")

    code, printed = environment.command("run")

    assert (code, first_finding(printed)) == (
        1,
        [
            "[spark-missing] a file hides PySpark",
            f"  why: import pyspark would load {environment.folder}/project/pyspark.py",
            "  fix: rename the file",
        ],
    )


@pytest.mark.parametrize("arguments", ["run", "debug", "run --target far"])
def test_without_py4j(environment: Environment, arguments: str) -> None:
    """Without py4j, as if only the folder `python` of a Spark were in PYTHONPATH, the missing package is named."""
    environment.install(pyspark.__version__)
    (environment.site / "py4j").unlink()

    code, printed = environment.command(*arguments.split())

    assert (code, "PySpark cannot be loaded, because py4j is not installed" in printed) == (1, True), printed
    assert "fix: install it: pip install py4j; or add the py4j zip file in python/lib" in printed


def test_pyspark_that_was_installed_over_databricks(environment: Environment) -> None:
    """If PySpark has been installed after databricks-connect, its files are in place, and Spark can start."""
    environment.install(pyspark.__version__)
    environment.install_databricks("19.3.0", b"another module")

    _, printed = environment.command("run")

    assert "spark-missing" not in printed
    assert "[java-missing]" in printed  # unit tests have no Java


def test_a_run_of_the_api(environment: Environment) -> None:
    """`run_models` raises the finding, and the results of the run have it."""
    program = (
        "from pathlib import Path; from sqlstream import FindingsError, ProjectRequest, RunRequest, run_models\n"
        "try: run_models(RunRequest(ProjectRequest(Path.cwd())), print)\n"
        "except FindingsError as error: print(error.findings[0].code)"
    )

    code, printed = environment.python("-c", program)

    assert (code, printed.splitlines()[-1]) == (0, "spark-missing"), printed
    results = json.loads((environment.folder / "project/target/run_results.json").read_text())
    assert "PySpark is not installed" in json.dumps(results)


def test_a_submitted_driver_with_an_old_pyspark(environment: Environment) -> None:
    """The driver of a submitted run, whose Spark runs already, needs a PySpark that is new enough, too."""
    environment.install("4.0.1")

    code, printed = environment.command("run", SQLSTREAM_SUBMITTED="shop.zip", PYSPARK_GATEWAY_PORT="1")

    assert (code, first_finding(printed)[0]) == (1, "[spark-too-old] PySpark 4.0.1 is too old"), printed


@pytest.mark.parametrize(
    "command",
    ["run", "dev --select plain", "debug", "debug --class-archive build", "submit --target yarn", "compile --check"],
)
def test_commands_with_another_spark_home(environment: Environment, command: str) -> None:
    """Every command that would start the Spark of SPARK_HOME says that there is none."""
    environment.install(pyspark.__version__)

    code, printed = environment.command(*command.split(), SPARK_HOME="/nowhere", HADOOP_CONF_DIR="/nowhere")

    assert code == 1, printed
    assert f"{CANNOT_START}, because SPARK_HOME contains no Spark" in printed
    assert "SPARK_HOME is `/nowhere`, which has no executable bin/spark-submit" in printed


def found_with_home(home: Path | str) -> Finding | None:
    """Returns the finding with this SPARK_HOME."""
    return check_spark({"SPARK_HOME": str(home)})


def spark_home(folder: Path, version: str) -> Path:
    """Creates a folder with the names of the files of a Spark."""
    for name in ("bin/spark-submit", f"jars/spark-core_2.13-{version}.jar"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch(0o755)
    return folder


@pytest.fixture
def no_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Spark runs in this process, as far as PySpark knows: another test may have started one."""
    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


@pytest.mark.usefixtures("no_jvm")
def test_the_installed_package_is_fine() -> None:
    """Nothing is found about the PySpark of this environment, also if SPARK_HOME names its folder."""
    assert [check_pyspark(), check_spark({}), found_with_home(INSTALLED)] == [None, None, None]


@pytest.mark.usefixtures("no_jvm")
def test_a_spark_home_without_spark(tmp_path: Path) -> None:
    """A SPARK_HOME that does not exist, or has no Spark, is named, and so is an empty one."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/spark-submit").touch(0o644)
    places: list[Path | str] = [tmp_path / "none", tmp_path, ""]
    found = [finding for finding in map(found_with_home, places) if finding is not None]

    assert [finding.code for finding in found] == ["spark-missing"] * 3
    assert found[1].why == f"SPARK_HOME is `{tmp_path}`, which has no executable bin/spark-submit"
    assert found[1].fix == "set SPARK_HOME to the folder of a Spark, or unset it to use that of PySpark"


@pytest.mark.usefixtures("no_jvm")
def test_an_old_spark_home(tmp_path: Path) -> None:
    """A SPARK_HOME with a Spark that sqlstream does not know is refused, one with another tested version is not."""
    old = found_with_home(spark_home(tmp_path / "old", "3.5.6"))

    assert found_with_home(spark_home(tmp_path / "other", "4.1.0")) is None
    assert found_with_home(spark_home(tmp_path / "later", "4.4.0-SNAPSHOT")) is None
    assert old is not None
    assert (old.code, old.message) == ("spark-too-old", "Spark 3.5.6 is too old")
    assert old.why == f"SPARK_HOME is `{tmp_path}/old`, and sqlstream needs 4.1 or later"


@pytest.mark.usefixtures("no_jvm")
def test_a_spark_that_runs_already(monkeypatch: pytest.MonkeyPatch) -> None:
    """If another program, such as spark-submit, has started Spark, its folder does not matter."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    assert found_with_home("/nowhere") is None


def test_a_spark_in_another_folder_of_pyspark(environment: Environment) -> None:
    """PySpark also finds the Spark that it has downloaded, for which PYSPARK_HADOOP_VERSION was set."""
    environment.install(pyspark.__version__, without=("jars", "bin"))
    downloaded = environment.site / "pyspark/spark-distribution"
    downloaded.mkdir()
    for name in ("jars", "bin"):
        (downloaded / name).symlink_to(INSTALLED / name)

    _, printed = environment.command("run")

    assert "spark-missing" not in printed
    assert "[java-missing]" in printed
