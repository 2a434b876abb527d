"""Seeds are checked when the project is loaded, and each mistake has its line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.project.declarations.seeds import MOST_SHOWN, find_values
from sqlstream.project.files.files import LARGEST_FILE_BYTES
from tests.support.loading_cases import found, load, load_good

SEED = "seeds/s.csv"

BROKEN: dict[str, tuple[str, list[str]]] = {
    "an empty file": ("", ["1:1 seed-header"]),
    "blank lines only": ("\n \n", ["1:1 seed-header"]),
    "too few and too many values": ("a,b\n1\n\n1,2,3\n", ["2:1 seed-row", "4:5 seed-row"]),
    "rows after quoted line breaks": ('a,b\n"1\n2",3\n4,"5\n6",7\n', ["5:4 seed-row"]),
    "a column without a name": ("a,,b, \n", ["1:3 seed-header", "1:6 seed-header"]),
    "the same names but for their case": ("a,b,a,B\n", ["1:5 seed-header", "1:7 seed-header"]),
    "blanks around a name": ("a, b\n", ["1:3 seed-header"]),
    "a quote that is never closed": ('a,b\n1,"2\n3,4\n', ["2:3 seed-syntax"]),
    "text after a closing quote": ('a,b\n1,"2"x\n3,4\n"a "b" c",5\n', ["2:6 seed-syntax", "4:5 seed-syntax"]),
    "a blank before a quote": ('a,b\n1, "2"\n', ["2:3 seed-syntax"]),
    "a header with a fault": ('"a"b,c\n1\n', ["1:4 seed-syntax"]),
    "semicolons": ("a;b\n1,5;2\n", ["1:2 seed-header"]),
    "tabs": ("a\tb\n1\t2\n", ["1:2 seed-header"]),
    "mixed line ends": ("a,b\r\n1,2\n3,4\r\n", ["2:4 seed-syntax"]),
}

SOUND: dict[str, str] = {
    "a header alone": "a,b",
    "a byte order mark": "\ufeffa,b\r\n1,2\r\n",
    "Windows line ends": 'a,b\r\n1,"x\r\ny"\r\n',
    "old Macintosh line ends": "a,b\r1,2\r",
    "quoted delimiters, line breaks and quotes": 'a,b\n"1,2","3\n4"\n"""",""\n',
    "blank lines": "\n\na,b\n\n1,2\n\n",
    "no last line end": "a,b\n1,2",
    "letters of all alphabets": "Größe,数\né,😀\n",
    "one column of quoted semicolons": '"a;b"\n1\n',
    "quotes within unquoted text": 'a,b\n5" pipe,1\n',
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_seed(case: str, tmp_path: Path) -> None:
    """Each mistake in a seed is found at its location, without findings that only follow from it."""
    text, expected = BROKEN[case]
    result = load(tmp_path, {SEED: text})
    assert found(result) == [f"{SEED}:{place}" for place in expected]
    assert result.project is None


@pytest.mark.parametrize("case", SOUND)
def test_valid_seed(case: str, tmp_path: Path) -> None:
    """Valid seeds are accepted, however unusual."""
    assert load_good(tmp_path, {SEED: SOUND[case]}).seeds[0].header


def test_mistakes_of_all_seeds_come_together(tmp_path: Path) -> None:
    """One broken seed does not hide mistakes in another."""
    result = load(tmp_path, {"seeds/x.csv": "a,b\n1\n", "seeds/y.csv": "a,a\n"})
    assert found(result) == ["seeds/x.csv:2:1 seed-row", "seeds/y.csv:1:3 seed-header"]


def test_many_wrong_rows_are_counted(tmp_path: Path) -> None:
    """Only the first wrong rows are shown; one more finding gives their number."""
    result = load(tmp_path, {SEED: "a,b\n" + "1\n" * 20})
    assert len(result.findings) == MOST_SHOWN + 1
    assert result.findings[-1].message.startswith("15 more mistakes")


def test_delimiter_of_the_configuration(tmp_path: Path) -> None:
    """The delimiter can be configured in the seed's properties or folder, as in dbt."""
    files = {
        "project.yml": 'name: shop\nseeds: {tabs: {+delimiter: "\\t"}}\n',
        SEED: "a;b\n1,5;2\n",
        "seeds/tabs/t.csv": "a\tb\n1\t2\n",
        "seeds/_s.yml": "seeds:\n  - {name: s, config: {delimiter: ';'}}\n",
    }
    assert [(seed.delimiter, seed.header) for seed in load_good(tmp_path, files).seeds] == [
        (";", ("a", "b")),
        ("\t", ("a", "b")),
    ]


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\\", "\n"])
def test_delimiter_is_one_character(delimiter: str, tmp_path: Path) -> None:
    """An invalid delimiter gives one finding at its location, and the seed's rows are not checked."""
    files = {
        SEED: "a;b\n1\n",
        "seeds/_s.yml": f"seeds:\n  - name: s\n    config:\n      delimiter: {delimiter!r}\n".replace("'", '"')
        if delimiter != '"'
        else "seeds:\n  - name: s\n    config:\n      delimiter: '\"'\n",
    }
    assert found(load(tmp_path, files)) == ["seeds/_s.yml:4:18 invalid-value"]


def test_delimiter_is_not_checked_while_yaml_is_broken(tmp_path: Path) -> None:
    """If a YAML file is broken, no seed is reported for a wrong delimiter, because that file may set it."""
    result = load(tmp_path, {SEED: "a;b\n1;2\n", "seeds/_s.yml": "seeds: [\n"})
    assert found(result) == ["seeds/_s.yml:1:8 yaml-syntax"]


def test_declared_column_that_the_header_lacks(tmp_path: Path) -> None:
    """A declared column that the header lacks is reported in the YAML with the nearest name; case does not matter."""
    files = {
        SEED: "zip,City\n",
        "seeds/_s.yml": "seeds:\n  - name: s\n    columns:\n      - {name: city, data_type: string}\n"
        "      - {name: zpi, data_type: string}\n",
    }
    result = load(tmp_path, files)
    assert found(result) == ["seeds/_s.yml:5:16 seed-column"]
    assert result.findings[0].fix == "did you mean `zip`?"


def test_declared_type_that_spark_lacks(tmp_path: Path) -> None:
    """An unknown type is located within its text; what only Spark can check is accepted."""
    files = {
        SEED: "a,b,c,d\n",
        "seeds/_s.yml": "seeds:\n  - name: s\n    columns:\n      - {name: a, data_type: itn}\n"
        "      - {name: b, data_type: 'array<text>'}\n      - {name: c, data_type: geometry}\n"
        "      - {name: d, data_type: int not null}\n",
    }
    result = load(tmp_path, files)
    assert found(result) == [
        "seeds/_s.yml:4:30 seed-column",
        "seeds/_s.yml:5:37 seed-column",
        "seeds/_s.yml:7:34 seed-column",
    ]
    assert result.findings[0].fix == "did you mean `int`?"


def test_name_that_spark_hides(tmp_path: Path) -> None:
    """A file name with a leading underscore is refused, because Spark reads no rows from it."""
    assert found(load(tmp_path, {"seeds/_s.csv": "a\n1\n"})) == ["seeds/_s.csv:1:1 invalid-value"]


def test_disabled_seed_is_not_checked(tmp_path: Path) -> None:
    """A disabled seed is not checked."""
    load_good(tmp_path, {SEED: "a,a\n1\n", "seeds/_s.yml": "seeds:\n  - {name: s, config: {enabled: false}}\n"})


def test_values_are_found_by_row_and_column(tmp_path: Path) -> None:
    """Values are found by row, counted below the header without blank lines, and column; missing cells are left out."""
    (seed,) = load_good(tmp_path, {SEED: 'a,b\r\n\r\n"x\r\ny",2\r\n3,"4"\r\n'}).seeds
    places = [(str(place), text) for place, text in find_values(tmp_path, seed, [(0, 0), (1, 1), (9, 0)])]
    assert places == [("seeds/s.csv:3:1", "x\ny"), ("seeds/s.csv:5:3", "4")]


@pytest.mark.parametrize("row", ["1,2\n", '"some text","and, more"\n'])
def test_the_largest_seed_is_read(row: str, tmp_path: Path) -> None:
    """A seed of the maximum file size is read."""
    text = "a,b\n" + row * ((LARGEST_FILE_BYTES - 10) // len(row))

    assert load_good(tmp_path, {SEED: text}).seeds[0].header == ("a", "b")
