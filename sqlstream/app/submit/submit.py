"""`sqlstream submit`: checks a run, packs its project, and has `spark-submit` start the driver in the cluster."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree as ET

from sqlstream.app.last_command import HIDDEN, command_words, run_arguments
from sqlstream.app.loading.load import try_load
from sqlstream.app.loading.logs import open_log
from sqlstream.app.request import MEMORY_ROWS, RunRequest
from sqlstream.app.run.run import ChosenQueries, choose_queries
from sqlstream.app.session import start_driver
from sqlstream.app.session.project_jars import session_connectors
from sqlstream.app.session.session import line_logger, with_avro_limits
from sqlstream.app.session.signals import interruptible
from sqlstream.app.session.start_driver import ENVIRONMENT, PROJECT
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.submit.archive import Archive, kubernetes_name, pack, unmistakable_secrets
from sqlstream.compiler.graph import source_id
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location
from sqlstream.project.configuration.target import Target
from sqlstream.project.files.files import find_project_root
from sqlstream.project.files.paths import is_absolute, join
from sqlstream.project.secret_text import SECRET_PREFIX
from sqlstream.spark.jvm.kubernetes import IMAGE, refusal
from sqlstream.spark.jvm.launch import JARS
from sqlstream.spark.jvm.pyspark_package import check_spark
from sqlstream.spark.jvm.session import LONG_RUN_JVM, SparkLaunch, launch_settings
from sqlstream.spark.secrets import Secrets, secret_names
from sqlstream.state.runs.shards import Shard

DRIVER = "sqlstream-driver.py"
"""The name of the copy of `start_driver.py` beside the archive."""

LISTS = {JARS: "--jars", "spark.files": "--files", "spark.archives": "--archives", "spark.submit.pyFiles": "--py-files"}
"""Settings with files of this machine, and the options of spark-submit that upload them."""

OWN = frozenset({"spark.master", "spark.app.name", "spark.driver.host", "spark.driver.bindAddress", *LISTS})
"""Settings that are options of spark-submit, or that only a driver on this machine has."""

LOG_LEVEL = "spark.log.level"
"""The level of Spark's log in the driver. Its default there is INFO, in which the lines of the run are hard to find."""

ONE_ATTEMPT = {"spark.yarn.maxAppAttempts": "1"}
"""YARN does not start a driver again that has failed."""

STAGING = "spark.yarn.stagingDir"
DEFAULT_FILE_SYSTEM = "fs.defaultFS"
OPEN_STORES = ("s3:", "s3a:", "s3n:", "gs:")
"""The stores whose files have no permissions in Hadoop: everyone who can read the bucket can read them."""

UPLOADS = "spark.kubernetes.file.upload.path"
DRIVER_IMAGE = "spark.kubernetes.driver.container.image"

KUBERNETES_WAITS = "spark.kubernetes.submission.waitAppCompletion"

_STATE = re.compile(r"(?:Application report for (?P<id>application_\w+) \(state: |phase: )(?P<state>\w+)")
_POD = re.compile(r"^\s+(?P<what>pod name|namespace|pending reason): (?P<value>\S+)")
"""What spark-submit prints about the driver's pod on Kubernetes."""
_LOGGED = re.compile(r"^\S+ \S+ (?:INFO|WARN|DEBUG) |^\s|^$")
"""Lines of Spark's log without errors, and continued lines, such as the frames of a stack trace."""


@dataclass(frozen=True)
class Submission:
    """A checked run, ready to start elsewhere: the archive, the command in the driver, the target, the `settings` of
    Spark without secrets, and paths of `jars`. `variables` are the environment variables that the project reads, and
    `secrets` the names of the secrets that the run uses. `repeats`: the cluster can start a driver that failed again,
    because it resumes; a second full refresh would start over.
    """

    name: str
    archive: Archive
    arguments: tuple[str, ...]
    target: Target
    settings: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()
    shard: Shard | None = None
    repeats: bool = True

    @property
    def object_name(self) -> str:
        """The name of its objects in Kubernetes: runs of different shards can be there at the same time."""
        shard = "" if self.shard is None else f" {self.shard.number} of {self.shard.count}"
        return kubernetes_name(f"{self.name}{shard}")


def prepare(
    request: RunRequest, notify: Callable[[str], None], *, with_sqlstream: bool = True, log_format: str = "text"
) -> Submission:
    """Returns the run of `request` with its archive, after the project has compiled as it is in the archive.

    Raises: FindingsError, UsageError, as the run itself would, and for what only this machine has.
    """
    secrets, root = Secrets(request.project.env), find_project_root(request.project.folder)
    if request.selection.state is not None:
        raise _unusable("--state", "it names a file of this machine", "select the models by name or by tag")
    loaded = try_load(request.project).readable()
    project, target = loaded.compiled.project, loaded.compiled.project.target
    if target.remote is not None or target.is_local or target.master.startswith("spark://"):
        raise FindingsError([_not_in_cluster(target)])
    clear = unmistakable_secrets(request.project.env)
    archive = pack(root, project.name, clear, with_sqlstream=with_sqlstream)
    with tempfile.TemporaryDirectory(prefix="sqlstream-") as folder:
        with zipfile.ZipFile(io.BytesIO(archive.content)) as packed:
            packed.extractall(folder)
        unpacked = replace(request.project, folder=Path(folder, PROJECT), partial_parse=False)
        attempt = try_load(unpacked)
        chosen = choose_queries(attempt, attempt.readable(), replace(request, project=unpacked), notify)
        _check_paths(chosen)
        launch = _launch(chosen, secrets, request.project.env, notify)
    open_log(root, request.project.env)  # compiling has opened that of the copy
    read = sorted(chosen.loaded.compiled.options.environment_read & request.project.env.keys())
    variables = {name: request.project.env[name] for name in read if not name.upper().startswith(SECRET_PREFIX)}
    settings = {LOG_LEVEL: "WARN", **launch_settings(target, launch)}
    shown = settings if target.master == "yarn" else {**settings, **variables}
    exposed = [name for name, value in shown.items() if clear.redact(value) != value]
    why = "others could read it on a command line, or in a manifest"
    fix = f"use the variable of the secret itself, whose name begins with {SECRET_PREFIX}"
    if exposed:
        raise FindingsError(
            cannot_submit(target, f"`{name}` contains the value of a secret", why, fix) for name in exposed
        )
    return Submission(
        project.name,
        archive,
        (*_arguments(request, target.name), *(["--log-format", "json"] if log_format == "json" else [])),
        target,
        settings,
        launch.connectors.jars,
        variables,
        _secrets_of(chosen),
        chosen.warnings,
        request.selection.shard,
        repeats=not request.full_refresh,
    )


def _launch(
    chosen: ChosenQueries, secrets: Secrets, env: Mapping[str, str], notify: Callable[[str], None]
) -> SparkLaunch:
    compiled = chosen.loaded.compiled
    ids = [model.unique_id for model in (*chosen.models, *compiled.own_rows)]
    launch = SparkLaunch(
        f"sqlstream {compiled.project.name}",
        join(storage_base(chosen.loaded), "warehouse"),
        lambda _: None,
        purpose=LONG_RUN_JVM,
        connectors=session_connectors(chosen.loaded, secrets, env, notify, ids),
    )
    return with_avro_limits(chosen.loaded, launch)


def _secrets_of(chosen: ChosenQueries) -> tuple[str, ...]:
    """Returns the names of the secrets in the target, its alert channels, and the sources and sinks of the run."""
    compiled = chosen.loaded.compiled
    target = compiled.project.target
    values = [*target.spark.values()]
    values += [value for channel in target.alerts.notify for value in channel.secret_options.values()]
    for table in (table for model in chosen.models for table in compiled.tables_of(model.unique_id)):
        values += [*table.options.values(), *(table.messages.options.values() if table.messages is not None else ())]
    outputs = (output for model in (*chosen.models, *compiled.own_rows) for output in compiled.outputs_of(model))
    values += [value for output in outputs for value in output.options.values()]
    return tuple(sorted(secret_names(values)))


def _arguments(request: RunRequest, target: str) -> tuple[str, ...]:
    """Returns the command of the driver. Raises: UsageError for variables that contain secrets."""
    arguments = {**run_arguments(request, "run"), "target": target}
    if arguments[HIDDEN]:
        raise _unusable(
            "--vars",
            "it contains the value of a secret, which would be on a command line of the cluster",
            "read the secret with env_var() in an option of a source, sink or target",
        )
    words = list(command_words(arguments))
    if arguments["vars"]:
        words += ["--vars", json.dumps(arguments["vars"], sort_keys=True, default=str)]
    if request.limit is not None and request.limit != MEMORY_ROWS:
        words += ["--limit", str(request.limit)]
    return (*words, *(["--standby"] if request.standby else []))


def _check_paths(chosen: ChosenQueries) -> None:
    """Raises: FindingsError for the storage and sources that only this machine has."""
    compiled = chosen.loaded.compiled
    project, target = compiled.project, compiled.project.target
    found = []
    if not is_absolute(target.storage):
        found.append((f"target `{target.name}` stores its data in", target.storage, target.location))
    read = {node for model in chosen.models for node in compiled.upstream(model.unique_id)}
    for table in project.sources:
        path = table.path or table.options.get("path")
        if isinstance(path, str) and not is_absolute(path) and source_id(project.name, table) in read:
            place = table.locations.get("path", table.location)
            found.append((f"source `{table.full_name}` reads", path, place))
    why = "it is a folder of this machine, and the driver and the executors run on others"
    fix = "use a URI that the cluster can reach, such as s3a://bucket/folder or hdfs://host/folder"
    if found:
        raise FindingsError(
            cannot_submit(target, f"{who} the relative path `{path}`", why, fix, place) for who, path, place in found
        )


def submit(submission: Submission, env: Mapping[str, str], notify: Callable[[str], None]) -> bool:
    """Starts the driver in the cluster, and returns whether it has succeeded once `spark-submit` ends.

    `notify` gets a line for each change of its state. Removes the files of the submission at the end, and the one
    with variables and secrets as soon as YARN has it. Ctrl-C, SIGTERM and SIGHUP end only the waiting.
    Raises: FindingsError, UsageError, if it cannot be submitted; KeyboardInterrupt.
    """
    _check_cluster(submission, env)
    secrets = Secrets(env)
    log, driver = line_logger(secrets), DriverState(submission.name, notify)
    lines: list[str] = []
    with interruptible(), tempfile.TemporaryDirectory(prefix="sqlstream-") as folder, ExitStack() as ending:
        command = [_spark_submit(env), *spark_submit_arguments(submission, Path(folder), env)]
        public = {name: value for name, value in env.items() if not name.startswith(SECRET_PREFIX)}
        started = subprocess.Popen(  # noqa: S603 - Spark's own script
            command, env=public, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        process = ending.enter_context(started)
        ending.callback(process.terminate)  # after a signal; otherwise it has ended
        for line in process.stdout or ():
            log(line.rstrip())
            if driver.reads(line):  # the driver's own copy is in the staging folder
                Path(folder, ENVIRONMENT).unlink(missing_ok=True)
            elif not _LOGGED.search(line):
                lines.append(secrets.redact(line.rstrip()))
        code = process.wait()
    if code == 0 and driver.has_succeeded(submission.target):
        return True
    if driver.application:
        notify(f"The driver has failed. Its log: {driver.log_command}")
        return False
    refused = None if submission.target.master == "yarn" else refusal(lines)
    if refused is not None:
        what = f"Kubernetes has not started a driver for target `{submission.target.name}`"
        raise FindingsError([cannot_submit(submission.target, what, *refused)])
    for line in lines[-MOST_LINES:]:
        notify(line)
    notify("spark-submit has failed; logs/sqlstream.log has its whole log")
    return False


MOST_LINES = 5
"""The number of lines of spark-submit to show if it starts no driver."""


STARTING = "ContainerCreating"
"""Why each container waits at first."""
PENDING = "pending reason"


@dataclass
class DriverState:
    """What spark-submit has printed about the driver of the project `name`: its last `state`, and the name of its
    `application` on YARN or of its pod on Kubernetes, with the `reasons` why it is pending. `notify` gets a line for
    each change.
    """

    name: str
    notify: Callable[[str], None]
    state: str = ""
    application: str = ""
    pod: dict[str, str] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=lambda: {STARTING})

    def reads(self, line: str) -> bool:
        """Returns whether a line of spark-submit has the state of the driver."""
        found, about = _STATE.search(line), _POD.search(line)
        if about and about["what"] != PENDING:
            self.pod[about["what"]] = about["value"]
        elif about and about["value"] not in self.reasons:  # two of them can alternate
            self.reasons.add(about["value"])
            self.notify(f"{self.application}: {about['value']}; see kubectl describe pod {self._pod}")
        if found and found["state"] != self.state:
            self.state, self.application = found["state"], found["id"] or self.pod.get("pod name", self.name)
            self.notify(f"{self.application}: {self.state.lower()}")
        return found is not None

    @property
    def log_command(self) -> str:
        """The command that prints the log of the driver."""
        return f"kubectl logs {self._pod}" if self.pod else f"yarn logs -applicationId {self.application}"

    @property
    def _pod(self) -> str:
        return f"{self.pod.get('pod name', '')} --namespace {self.pod.get('namespace', 'default')}"

    def has_succeeded(self, target: Target) -> bool:
        """Returns whether the driver has succeeded, if spark-submit has ended with 0. On Kubernetes it does so after
        each end of the driver, also if its pod is deleted.
        """
        if target.master == "yarn" or str(target.spark.get(KUBERNETES_WAITS, "")).lower() == "false":
            return self.state.lower() != "failed"
        return self.state.lower() == "succeeded"


def _spark_submit(env: Mapping[str, str]) -> str:
    """Returns the path of spark-submit. Raises: FindingsError if there is none."""
    wrong = check_spark(env)
    if wrong is not None:
        raise FindingsError([wrong])
    from pyspark.find_spark_home import _find_spark_home

    return f"{_find_spark_home()}/bin/spark-submit"


def spark_submit_arguments(submission: Submission, folder: Path, env: Mapping[str, str]) -> list[str]:
    """Writes what the driver needs into `folder`, and returns the arguments of spark-submit.

    On YARN, variables and secrets travel in a file that only this user can read, here and in the staging folder: a
    command line and the environment of the driver's Java process show neither. YARN copies it to the private folder of
    each container of the application, until the application ends. On Kubernetes, secrets are those of the cluster.
    """
    target, archive = submission.target, folder / submission.archive.name
    archive.write_bytes(submission.archive.content)
    driver = folder / DRIVER
    driver.write_bytes(Path(start_driver.__file__).read_bytes())
    files, settings = [str(archive)], {**submission.settings}
    if target.master == "yarn":
        files += [str(_variables_file(submission, folder, env))]
        settings |= {} if submission.repeats else ONE_ATTEMPT
    else:
        settings |= _kubernetes_variables(submission)
    uploads = {name: settings.get(name, "").split(",") for name in LISTS}
    uploads["spark.files"] += files
    words = ["--master", target.master, "--deploy-mode", "cluster", "--name", settings["spark.app.name"]]
    for name, value in sorted(settings.items()):
        if name not in OWN:
            words += ["--conf", f"{name}={value}"]
    for name, option in LISTS.items():
        listed = ",".join(dict.fromkeys(each for each in uploads[name] if each))
        words += [option, listed] if listed else []
    return [*words, str(driver), submission.archive.name, *submission.arguments]


def _variables_file(submission: Submission, folder: Path, env: Mapping[str, str]) -> Path:
    values = {**submission.variables, **{name: env[name] for name in submission.secrets if name in env}}
    path = folder / ENVIRONMENT
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(values, file)
    return path


def _kubernetes_variables(submission: Submission) -> dict[str, str]:
    plain = {f"spark.kubernetes.driverEnv.{name}": value for name, value in submission.variables.items()}
    secret = kubernetes_name(submission.name)
    return plain | {f"spark.kubernetes.driver.secretKeyRef.{name}": f"{secret}:{name}" for name in submission.secrets}


def _check_cluster(submission: Submission, env: Mapping[str, str]) -> None:
    target = submission.target
    if target.master == "yarn":
        if not env.get("HADOOP_CONF_DIR") and not env.get("YARN_CONF_DIR"):
            raise _unusable(
                "`submit`",
                "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set, so Spark does not know the cluster",
                "set HADOOP_CONF_DIR to the folder with core-site.xml and yarn-site.xml of the cluster",
            )
        staging = submission.settings.get(STAGING, "")
        store = staging if ":" in staging else _default_file_system(submission.settings, env)
        used = [name for name in submission.secrets if name in env]
        if used and store.lower().startswith(OPEN_STORES):
            what = f"the secret `{used[0]}` cannot be sent through {store}"
            why = (
                "Spark protects the files of a submission by permissions, which its staging folder there does not have"
            )
            fix = f"set {STAGING} in `spark` of the target to a folder on HDFS"
            raise FindingsError([cannot_submit(target, what, why, fix)])
        return
    missing = []
    if UPLOADS not in target.spark:
        what = f"target `{target.name}` does not say where the driver's pod finds the project"
        why = f"spark-submit uploads files of this machine to `{UPLOADS}`"
        fix = f"set {UPLOADS} in `spark` of the target, for example to s3a://bucket/uploads, or use --manifest"
        missing.append(cannot_submit(target, what, why, fix))
    if not any(target.spark.get(name) for name in (IMAGE, DRIVER_IMAGE)):
        missing.append(no_image(target))
    if missing:
        raise FindingsError(missing)


def _default_file_system(settings: Mapping[str, str], env: Mapping[str, str]) -> str:
    """Returns the file system of paths without a scheme, empty if Hadoop's settings do not say it."""
    found = settings.get(f"spark.hadoop.{DEFAULT_FILE_SYSTEM}", "")
    for folder in (env.get("HADOOP_CONF_DIR"), env.get("YARN_CONF_DIR")):
        if folder and not found:
            with suppress(OSError, ET.ParseError):
                file = Path(folder, "core-site.xml")
                properties = ET.parse(file).iter("property")  # noqa: S314 - the settings of this user's Hadoop
                values = {each.findtext("name", "").strip(): each.findtext("value", "").strip() for each in properties}
                found = values.get(DEFAULT_FILE_SYSTEM, "")
    return found


def _unusable(what: str, why: str, fix: str) -> UsageError:
    return UsageError(f"{what} cannot be used here\n  why: {why}\n  fix: {fix}")


def _not_in_cluster(target: Target) -> Finding:
    if target.remote is not None:
        what, why = "has `remote`", "the server of Spark Connect has no driver of a run: that is always this command"
        fix = "use `sqlstream run`; `sqlstream submit --manifest spark-connect` with a target on k8s:// starts a server"
    elif target.is_local:
        what, why = f"runs on {target.master}", "all of Spark is then in one process on this machine"
        fix = "use `sqlstream run`, or a target on yarn or k8s://"
    else:
        what, why = f"runs on {target.master}", "Spark's standalone clusters do not start drivers in Python"
        fix = "use `sqlstream run` on a machine near the cluster, or a target on yarn or k8s://"
    return Finding(
        "unsupported-target", f"`submit` cannot use target `{target.name}`, which {what}", why, fix, target.location
    )


def no_image(target: Target) -> Finding:
    """Returns the finding about a target on Kubernetes without an image."""
    what = f"target `{target.name}` has no image for its pods"
    why = "the pods of the driver and of executors need Spark, Java, Python and the packages that sqlstream needs"
    return cannot_submit(target, what, why, f"set {IMAGE} in `spark` of the target")


def cannot_submit(target: Target, what: str, why: str, fix: str, location: Location | None = None) -> Finding:
    """Returns the finding that a run on `target` cannot be submitted, at the location of the target or another one."""
    return Finding("cannot-submit", what, why, fix, location or target.location)
