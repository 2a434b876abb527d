"""`make corpus`: records Spark's verdict on every case, and prints the cases on which sqlstream disagrees."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sqlstream.compiler.spark_versions import installed_spark
from sqlstream.project.values import Project
from sqlstream.spark.jvm.session import SparkLaunch, SparkRuntime, start_spark, stop_spark
from sqlstream.spark.secrets import Secrets
from tests.corpus.corpus_cases import NOT_YET, PROJECT, Case, read_cases
from tests.corpus.corpus_check import check_case, is_check_correct
from tests.corpus.corpus_compile import Attempt, compile_case, load_corpus_project
from tests.corpus.corpus_data import write_data
from tests.corpus.corpus_report import JudgedCase, describe
from tests.corpus.corpus_spark import Judge
from tests.corpus.corpus_verdicts import Verdict, read_verdicts, recorded_version, write_verdicts

THREADS = 3
"""The number of parallel queries. Each waits from time to time for its trigger and its files."""


def main() -> int:
    """Returns 1 if Spark's verdicts differ from the recorded ones, or sqlstream's from Spark's. Always returns 0 with
    `--other-spark`.
    """
    arguments = _arguments()
    cases = [case for case in read_cases() if _is_selected(case, arguments.words)]
    recorded = read_verdicts()
    began = time.monotonic()
    if arguments.recorded:
        attempts = _compile_all(load_corpus_project(PROJECT), cases, recorded_version())
        verdicts: Mapping[str, Verdict] = recorded
        checked: Mapping[str, bool] = {}
    else:
        attempts, verdicts, checked, version = _ask_spark(cases, arguments)
        if arguments.other_spark:
            print(f"Spark {version}, compared with the recorded verdicts of Spark {recorded_version()}\n")
        elif not arguments.words and not arguments.no_row_counts:
            write_verdicts(verdicts, version)
    judged = [
        JudgedCase(case, attempts[name], verdicts[name], recorded.get(name), checked.get(name, True))
        for name, case in ((case.name, case) for case in cases)
    ]
    if arguments.write_not_yet:
        NOT_YET.write_text("".join(f"{item.case.name}\n" for item in judged if item.is_missed))
    text, is_right = describe(judged, time.monotonic() - began, verbose=arguments.verbose)
    print(text)
    return 0 if is_right or arguments.other_spark else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only cases with one of these in name or theme; record nothing")
    parser.add_argument("--recorded", action="store_true", help="compare with the recorded verdicts, without Spark")
    parser.add_argument("--other-spark", action="store_true", help="show how another Spark differs; record nothing")
    parser.add_argument("--verbose", action="store_true", help="print all verdicts, with the number of emitted rows")
    parser.add_argument("--no-row-counts", action="store_true", help="start queries without counting their rows")
    parser.add_argument("--write-not-yet", action="store_true", help="write cases that no rule finds to not_yet.txt")
    return parser.parse_args()


def _is_selected(case: Case, words: Sequence[str]) -> bool:
    return not words or any(word in case.name or word in case.theme for word in words)


def _compile_all(project: Project, cases: Sequence[Case], spark: str) -> dict[str, Attempt]:
    return {case.name: compile_case(project, case, spark) for case in cases}


def _ask_spark(
    cases: Sequence[Case], arguments: argparse.Namespace
) -> tuple[dict[str, Attempt], dict[str, Verdict], dict[str, bool], str]:
    """Returns the attempts, the verdicts, whether checks are correct, each by the name of the case, and Spark's
    version. Starts one Spark session for all.
    """
    with tempfile.TemporaryDirectory(prefix="sqlstream-corpus-") as name:
        folder = Path(name)
        shutil.copytree(PROJECT, folder / "project")
        write_data(folder / "project" / "data")
        project = load_corpus_project(folder / "project")
        attempts = _compile_all(project, cases, installed_spark())
        launch = SparkLaunch("sqlstream corpus", str(folder / "warehouse"), lambda _line: None)
        runtime = start_spark(project.target, Secrets({}), launch)
        try:
            judge = Judge(runtime, folder, not arguments.no_row_counts, is_other=arguments.other_spark)
            verdicts = _verdicts(judge, cases, attempts)
            checked = {case.name: _check(runtime, case, attempts[case.name], verdicts[case.name]) for case in cases}
            return attempts, verdicts, checked, runtime.version
        finally:
            stop_spark(runtime)


def _verdicts(judge: Judge, cases: Sequence[Case], attempts: Mapping[str, Attempt]) -> dict[str, Verdict]:
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda case: _verdict(judge, case, attempts[case.name]), cases)
        return {case.name: verdict for case, verdict in zip(cases, found, strict=True)}


def _verdict(judge: Judge, case: Case, attempt: Attempt) -> Verdict:
    model = attempt.terminal(case)
    if attempt.compiled is None:
        raise RuntimeError(f"{case.name} has nothing to run")
    return judge.judge(case, attempt.compiled, model)


def _check(runtime: SparkRuntime, case: Case, attempt: Attempt, verdict: Verdict) -> bool:
    return is_check_correct(case, attempt, verdict, check_case(attempt, case, runtime))


if __name__ == "__main__":
    sys.exit(main())
