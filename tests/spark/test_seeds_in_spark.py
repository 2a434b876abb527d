"""Spark and the project's check read the same values from a seed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sqlstream import ProjectRequest
from sqlstream.app.compile.compile import compile_models
from sqlstream.location import Location
from sqlstream.project.configuration.documents import DeclaredColumn
from sqlstream.project.files.csv_text import CsvText
from sqlstream.project.values import Seed
from sqlstream.project.yaml import Located
from sqlstream.spark.reading.inputs import NodeReader, ViewBuilder
from sqlstream.spark.reading.seed_frames import open_seed
from sqlstream.spark.reading.sources import Readers
from sqlstream.spark.secrets import Secrets
from tests.spark.conftest import ProjectFolder

NASTY = {
    "plain": b"a,b\n1,2\n",
    "no last line end": b"a,b\n1,2",
    "a header alone": b"a,b",
    "a byte order mark": b"\xef\xbb\xbfa,b\r\n1,2\r\n",
    "a byte order mark and quotes": b'\xef\xbb\xbf"a",b\n1,2\n',
    "blank lines": b"\n\na,b\n\n1,2\n\n\n3,4\n\n",
    "blank Windows lines": b"\r\na,b\r\n\r\n1,2\r\n\r\n",
    "old Macintosh": b'a,b\r1,"x\ry"\r',
    "quoted line breaks": b'a,b\n"1\n\n2","\n"\n3,"4\n"\n',
    "quoted Windows line breaks": b'a,b\r\n"1\r\n2","x\ny"\r\n3,"\r\n"\r\n',
    "quoted returns in a Unix file": b'a,b\n"1\r\n2","x\ry"\n',
    "a broken header": b'a,"b\nc"\n1,2\n',
    "a Windows file with a Unix last line": b"a,b\r\n1,2\r\n3,4\n",
    "doubled quotes": b'a,b\n"""",""""""\n"x""y","""x"""\n"","x"""\n',
    "quotes within text": b'a,b\n5" pipe,x"y"z\nx"",a""b\n',
    "delimiters within quotes": b'a,b\n"1,2",","\n',
    "blanks": b"a,b\n 1 ,\t2\n  ,  \n",
    "blanks after quotes": b'a,b\n"1" ,"2"  \n"3"\t,"4" ',
    "empty values": b'a,b\n,\n"",1\n2,\n',
    "backslashes": b'a,b\n\\,\\\\\n"\\","x\\"\n"a\\n","\\"""\n',
    "comment signs": b"a,b\n#1,2\n--,//\n",
    "non-ASCII": "größe,数\né\u00a0,😀\n\u2028,\x85\n".encode(),
    "control characters": b"a,b\n1\x00,\x01\n\x0b,\x0c\n\x1a,\x7f\n",
    "words that might be values": b"a,b\nnull,NULL\nNaN,true\n",
    "weird names": b'"we`ird, a.b","x"" y"\n1,2\n',
}


def open_text(spark: SparkSession, root: Path, path: str, data: bytes, delimiter: str = ",") -> list[list[str | None]]:
    """Returns the rows that Spark reads from a file with these bytes, all columns as text."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(data)
    csv = CsvText((root / path).read_bytes().decode().removeprefix("\ufeff"), delimiter)
    header = tuple(value.text for value in csv.values(next(csv.rows())))
    columns = tuple(DeclaredColumn(name=name, data_type="string") for name in header)
    config = {"delimiter": Located(delimiter, Location(path))}
    seed = Seed("s", path, "", columns, config, Location(path), header=header)
    frame = open_seed(seed, Readers(spark, Secrets({}), root))
    assert tuple(frame.columns) == header
    return [list(row) for row in frame.collect()]


def checked_rows(data: bytes, delimiter: str = ",") -> list[list[str | None]]:
    """Returns the rows that the project's check reads, with null for empty text, as in Spark."""
    csv = CsvText(data.decode().removeprefix("\ufeff"), delimiter)
    rows = list(csv.rows())
    assert csv.stray_line_end() is None
    assert list(csv.odd_rows(rows[0].width)) == []
    return [[value.text or None for value in csv.values(row)] for row in rows[1:]]


@pytest.mark.parametrize("case", NASTY)
def test_spark_and_the_check_read_the_same(case: str, spark: SparkSession, tmp_path: Path) -> None:
    """Spark and the check read the same values from every file that the check accepts."""
    assert open_text(spark, tmp_path, "seeds/s.csv", NASTY[case]) == checked_rows(NASTY[case])


def random_value(random: Random) -> str:
    """Returns a CSV value of a few difficult characters, quoted or not."""
    if random.random() < 0.5:
        text = "".join(random.choices('"ab, \t\n\r\\é', k=random.randint(0, 5)))
        return '"' + text.replace('"', '""') + '"'
    return "".join(random.choices('"ab \t\\é', k=random.randint(0, 4)))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))  # hypothesis is not installed in the environment with the oldest Spark
def test_random_accepted_text_is_the_same(number: int, spark: SparkSession, tmp_path: Path) -> None:
    """Spark reads every random text that the check accepts as the check does."""
    random, read = Random(number), 0
    while read < 10:
        line_end = random.choice(["\n", "\r\n"])
        lines = [f"{random_value(random)},{random_value(random)}" for _ in range(random.randint(0, 4))]
        text = line_end.join(["a,b", *lines]) + line_end * random.randint(0, 2)
        csv = CsvText(text, ",")
        if csv.stray_line_end() is None and not list(csv.odd_rows(2)):
            read += 1
            assert open_text(spark, tmp_path, "seeds/s.csv", text.encode()) == checked_rows(text.encode()), text


@pytest.mark.parametrize("delimiter", [";", "\t", " ", "|", "^", "]", "é", "#"])
def test_any_delimiter_is_the_same_in_both(delimiter: str, spark: SparkSession, tmp_path: Path) -> None:
    """A configured delimiter splits values outside quotes only, and blanks after quotes are ignored."""
    data = f'a{delimiter}b\n1{delimiter}"2{delimiter}3"\n"4"{delimiter}5,6\n'.encode()
    rows = open_text(spark, tmp_path, "seeds/s.csv", data, delimiter)
    assert rows == checked_rows(data, delimiter) == [["1", f"2{delimiter}3"], ["4", "5,6"]]


@pytest.mark.parametrize(
    "name", ["[a]", "{b,c}", "d*", "e?", "back\\slash", "%20", "a b", "c:d", "#h", "year=2024", "_u"]
)
def test_names_with_pattern_characters(name: str, spark: SparkSession, tmp_path: Path) -> None:
    """A seed can be in a folder of any name, and in a project folder of any name."""
    assert open_text(spark, tmp_path / name, f"seeds/{name}/s.csv", b"a,b\n1,2\n") == [["1", "2"]]


def jobs_so_far(spark: SparkSession) -> int:
    """Returns the number of jobs that Spark has started."""
    context: Any = spark.sparkContext._jsc.sc()
    return int(context.dagScheduler().numTotalJobs())


def test_a_seed_is_opened_once_for_a_query(spark: SparkSession, folder: ProjectFolder) -> None:
    """A query opens a seed once for all references, since each opening takes Spark jobs; a self-join works."""
    folder.write(
        {
            "seeds/kinds.csv": "kind,size\na,3\nb,4\n",
            "seeds/_s.yml": "seeds:\n  - {name: kinds, columns: [{name: size, data_type: int}]}\n",
            "models/once.sql": "select kind from {{ ref('kinds') }}",
            "models/big.sql": "select kind, size as big from {{ ref('kinds') }} where size > 3",
            "models/often.sql": "select k.kind, other.size, big from {{ ref('kinds') }} k join {{ ref('big') }} using (kind)\n"
            "join {{ ref('once') }} using (kind) join {{ ref('kinds') }} other using (kind)",
        }
    )
    compiled = compile_models(ProjectRequest(folder.root)).loaded.compiled
    readers = Readers(spark, Secrets({}), folder.root)

    def build(name: str) -> tuple[list[tuple[object, ...]], int]:
        model = compiled.models[f"model.shop.{name}"]
        before = jobs_so_far(spark)
        frame = ViewBuilder(NodeReader(compiled, readers), (), names_sources=False).build(model)
        jobs = jobs_so_far(spark) - before
        return sorted(tuple(row) for row in frame.collect()), jobs

    once, jobs_once = build("once")
    often, jobs_often = build("often")

    assert (once, often) == ([("a",), ("b",)], [("b", 4, 4)])
    assert jobs_often == jobs_once > 0
