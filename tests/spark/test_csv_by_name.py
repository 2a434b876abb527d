"""CSV files with `schema_changes`: columns are found by the names in the header of each file, and others are new."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sqlstream.errors import FindingsError
from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import PROJECT, ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

COLUMNS = "id int, code string, price double, at timestamp, day date"

GOOD: dict[str, tuple[str, str, tuple[Any, ...], dict[str, Any]]] = {
    "as declared": ("id,code,price,at", "1,007,1.50,2026-01-01T00:00:00Z", (1, "007", 1.5), {}),
    "in another order": ("price,code,id", "1.5,007,2", (2, "007", 1.5), {}),
    "added": ("id,code,color,zip", "3,a,red,01234", (3, "a", None), {"color": "red", "zip": "01234"}),
    "added, empty": ("id,color,size", '4,,""', (4, None, None), {"color": None, "size": ""}),
    "removed": ("code,id", "a,5", (5, "a", None), {}),
    "renamed": ("id,kode", "6,a", (6, None, None), {"kode": "a"}),
    "in another letter case": ("ID, Code ", "7,a", (7, "a", None), {}),
    "with quotes": ('"id","co,l""r",code', '8,"a,""b""","x, ""y"""', (8, 'x, "y"', None), {'co,l"r': 'a,"b"'}),
    "without a name": (",id,", "0,9,", (9, None, None), {"": None}),
    "twice": ("id,new,new", "10,a,b", (10, None, None), {"new": "b"}),
    "numbers as they are written": ("code,id", "0012.50,11", (11, "0012.50", None), {}),
    "a quote within": ("id,code,new", '12,5" nail,a', (12, '5" nail', None), {"new": "a"}),
    "spaces": ("id,code", "13, a ", (13, " a ", None), {}),
    "an empty text": ("id,code", '14,""', (14, "", None), {}),
    "the null value": ("id,code,new", "15,NA,NA", (15, None, None), {"new": None}),
}
"""Headers and lines, the values of id, code and price, and those of columns that are not declared."""

CORRUPT = {
    "too few values": ("id,code,at", "20,", "the line has 2 values, but the header of the file has 3"),
    "only a number": ("id,code", "021", "the line has only one value"),
    "too many values": ("id,code", "22,a,b", "the line has 3 values, but the header of the file has 2"),
    "retyped": (
        "id,code,price",
        "x,a,cheap",
        "the line has a value that cannot be read: `id` as int, `price` as double",
    ),
    "one column": ("id;code", "24;a", "the header of the file has only one column, id;code"),
    "declared twice": ("id,code,Code", "25,a,b", "the header of the file has columns twice: `code`"),
    "an open quote": ("id,code", '26,"a', "the line has a quote that is not closed, or more than 205 columns"),
}


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    """Returns a project with one model over the source `made.rows`, whose files are in `in/`."""
    made = ProjectFolder(tmp_path)
    made.write(
        {
            "project.yml": PROJECT,
            "sinks.yml": 'sinks: [{name: lake, format: parquet, path: "{{ model.name }}"}, {name: table, format: noop}]\n',
            "models/all_rows.sql": "{{ config(sink='lake') }} select * from {{ source('made', 'rows') }}",
        }
    )
    return made


def _declare(folder: ProjectFolder, keys: str, columns: str = COLUMNS, options: str = "") -> None:
    options = f"options: {{header: true, nullValue: NA, escape: '\"'{options}}}"
    table = f"{{name: rows, format: csv, path: in, schema: '{columns}', {options}, {keys}}}"
    folder.write({"sources.yml": f"sources: [{{name: made, tables: [{table}]}}]\n"})


def _new_fields(folder: ProjectFolder) -> dict[str, int]:
    (batch,) = [event for event in folder.events if isinstance(event, BatchProgress) and event.model == "all_rows"]
    return dict(batch.new_fields.get("made.rows", {}))


@pytest.mark.slow
def test_columns_are_found_by_name(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Each file has its header; new columns are counted and kept, and lines that do not match it are corrupt."""
    for number, (header, line, _, _) in enumerate(GOOD.values()):
        folder.write({f"in/day=2026-01-01/{number}.csv": f"{header}\n{line}\n"})
    for number, (header, line, _) in enumerate(CORRUPT.values()):
        folder.write({f"in/day=2026-01-02/{number}.csv": f"{header}\n{line}\n"})
    _declare(folder, "schema_changes: rescue, on_corrupt: quarantine, quarantine_sink: lake")

    assert [result.finding for result in folder.run().results] == [None, None]

    rows = {row["id"]: row for row in read_parquet(folder.root / "store/all_rows")}
    assert {tuple(row[name] for name in ("id", "code", "price")) for row in rows.values()} == {
        values for _, _, values, _ in GOOD.values()
    }
    kept = {number: json.loads(row["_rescued_data"] or "{}") for number, row in rows.items()}
    assert {Path(values.pop("_file_path", "in/day=2026-01-01/0.csv")).parent.name for values in kept.values()} == {
        "day=2026-01-01"
    }
    assert kept == {values[0]: new for _, _, values, new in GOOD.values()}
    assert {str(row["day"]) for row in rows.values()} == {"2026-01-01"}
    assert str(rows[1]["at"])[:16] == "2026-01-01 00:00"
    found = {(row["record"], row["reason"]) for row in read_parquet(folder.root / "store/made__rows__corrupt")}
    # a line of only one number is one of Spark's numbers
    assert found == {("21" if line == "021" else line, reason) for _, line, reason in CORRUPT.values()}
    counts: dict[str, int] = {}
    for _, _, _, new in GOOD.values():
        counts |= {name: counts.get(name, 0) + 1 for name in new}
    assert _new_fields(folder) == counts


LINES = [
    "id,code,price,at,day",
    "1,a,1.5,2026-01-01 10:00:00,2026-01-01",
    '2,"a, b",2,,',
    '3,"a ""b"" c",,,',
    r'4,"a \"b\" c",-1e3,,',
    '5," a ", 1,,',
    '6, "a" ,+7,,',
    "7,'a',007,,",
    "8,NA,NaN,,",
    '9,,Inf,,"2026-01-01"',
    '10,"",,"",""',
    '11,5" nail,,,',
    "12,é€😀,,,",
    "#13,a,,,",
    "14,a,x,,",
    "15,a,,soon,",
    " ",
    "x,a,1,,",
    "2147483648,a,,,",
    "17,\\,1,,",
    "18,a\tb,1,,",
    "19,TRUE,1,,",
]
OPTIONS: dict[str, dict[str, str]] = {
    "plain": {},
    "quoted": {"escape": '"', "nullValue": "NA"},
    "tabs": {"sep": "\t", "quote": ""},
    "bars": {"delimiter": "|", "emptyValue": "nothing"},
    "single quotes": {"sep": ";", "quote": "'", "comment": "#", "nanValue": "7", "positiveInf": "Inf"},
    "spaces": {"ignoreLeadingWhiteSpace": "true", "ignoreTrailingWhiteSpace": "true"},
    "latin": {"encoding": "ISO-8859-1", "timestampFormat": "yyyy-MM-dd HH:mm:ss", "charToEscapeQuoteEscaping": "x"},
    "stopping": {"unescapedQuoteHandling": "BACK_TO_DELIMITER", "locale": "de-DE"},
}
"""Options of Spark's reader, with which `LINES` are written and read."""


@pytest.mark.slow
def test_values_are_those_of_sparks_reader(folder: ProjectFolder) -> None:
    """A file with the declared header has the same rows with the key as without it, whichever options it has, and
    also if Spark reads it in parts.
    """
    tables = []
    for number, options in enumerate(OPTIONS.values()):
        sep = options.get("sep", options.get("delimiter", ","))
        text = "".join(f"{line.replace(',', sep)}\n" for line in LINES)
        path = folder.root / f"in{number}/a.csv"
        path.parent.mkdir()
        path.write_bytes(text.encode(options.get("encoding", "utf-8"), errors="replace"))
        (path.parent / "b.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        for name, key in (("plain", ""), ("named", ", schema_changes: rescue")):
            written = json.dumps({"header": "true", **options})
            keys = f"format: csv, path: in{number}, schema: '{COLUMNS}', mode: batch, on_corrupt: drop"
            tables.append(f"{{name: {name}{number}, {keys}, options: {written}{key}}}")
    project = PROJECT.replace("storage: store", "storage: store, spark: {spark.sql.files.maxPartitionBytes: '128'}")
    folder.write({"project.yml": project, "sources.yml": f"sources: [{{name: made, tables: [{', '.join(tables)}]}}]\n"})
    (folder.root / "models/all_rows.sql").unlink()
    for name in ("plain", "named"):
        selects = (
            f"select {number} as number, id, code, price, at, day from {{{{ source('made', '{name}{number}') }}}}"
            for number in range(len(OPTIONS))
        )
        folder.write({f"models/{name}.sql": "{{ config(sink='lake') }} " + " union all ".join(selects)})

    assert [result.finding for result in folder.run().results] == [None, None]

    plain, named = (
        sorted(map(str, pq.read_table(folder.root / f"store/{name}").to_pylist())) for name in ("plain", "named")
    )
    assert named == plain
    assert len(named) > 20 * len(OPTIONS)


@pytest.mark.slow
def test_state_depends_on_how_columns_are_found(folder: ProjectFolder) -> None:
    """A query with state goes on from its checkpoint when the key has another value. Without it columns are found by
    position, so other rows can come; a changed aggregation is refused as without it.
    """
    folder.write({"in/day=2026-01-01/a.csv": "id,code,price,at\n1,a,1.5,2026-01-01 00:00:00\n"})
    model = (
        "{{ config(sink='table', output_mode='update') }} select day, date_trunc('hour', at) as hour, code, "
        "MAX(price) as last, sum(id) as n from {{ source('made', 'rows') }} where at is not null group by all"
    )

    def change(keys: str, function: str = "max") -> str | None:
        _declare(folder, keys)
        folder.write({"models/all_rows.sql": model.replace("MAX", function)})
        try:
            result = folder.result("all_rows")
        except FindingsError as error:
            return error.findings[0].code
        return None if result.finding is None else result.finding.code

    kinds = ["schema_changes: ignore", "schema_changes: rescue", "schema_changes: fail"]
    assert [change(keys) for keys in kinds] == [None] * 3
    assert change("on_corrupt: fail") == "state-change"
    assert [change(keys, "min") for keys in kinds] == ["state-change"] * 3


@pytest.mark.slow
def test_new_columns_end_the_query_or_are_declared(folder: ProjectFolder, read_parquet: Rows) -> None:
    """With `fail`, the error names the file and the columns. `evolve` writes types as Spark would infer them, but a
    number that begins with a zero is a text; the patched source reads the files by name.
    """
    header = "size,id,zip,code,is_new,since,ratio,note"
    folder.write({"in/a.csv": f"{header}\n5,1,01234,a,true,2026-01-01,1.5,\n7,2,5,b,FALSE,2026-01-02,2,\n"})
    _declare(folder, "schema_changes: fail")
    finding = folder.result("all_rows").finding
    assert finding is not None
    assert finding.code == "schema-changed"
    assert finding.why.endswith("in/a.csv, they are size, zip, is_new, since, ratio, note")

    _declare(folder, "schema_changes: evolve")
    assert folder.result("all_rows", full_refresh=True).finding is None
    patch = (folder.root / "target/schema_changes/made.rows.patch").read_text()
    assert "is_new boolean, ratio double, since date, size bigint, zip string" in patch

    _declare(folder, "schema_changes: evolve", f"{COLUMNS}, is_new boolean, ratio double, size bigint, zip string")
    assert folder.result("all_rows", full_refresh=True).finding is None
    rows = sorted(read_parquet(folder.root / "store/all_rows"), key=lambda row: row["id"])
    assert [(row["size"], row["zip"], row["is_new"], row["ratio"]) for row in rows] == [
        (5, "01234", True, 1.5),
        (7, "5", False, 2.0),
    ]
    assert [set(json.loads(row["_rescued_data"])) for row in rows] == [{"since", "note", "_file_path"}] * 2
