"""Mutations of bytes, of seeds, and of a project's files as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath
from random import Random

from tests.fuzz.fuzz_pools import odd_text, size

PIECES = (
    *(b"\xff", b"\x00", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xfe\xff", b"\r"),
    *(b"\x1b[2J", b"\x1a"),
)
"""Bytes that are invalid or rare in UTF-8."""

NAMES = (
    *("a b", "ü", "select", "a.b", "-", "a'b", "a`b", "😀", "A", "a\nb", "1", "_", "a" * 200, " ", "\x1b[31m", "con"),
    *("{{ x }}",),
)
"""Names of files, without their endings."""


def insert_bytes(rng: Random, data: bytes) -> bytes:
    """Inserts invalid or random bytes."""
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice((*PIECES, rng.randbytes(size(rng, 200)))) + data[at:]


def change_byte(rng: Random, data: bytes) -> bytes:
    """Changes one byte."""
    at = rng.randrange(len(data) or 1)
    return data[:at] + rng.randbytes(1) + data[at + 1 :]


def truncate(rng: Random, data: bytes) -> bytes:
    """Removes the end."""
    return data[: rng.randint(0, len(data))]


def delete_bytes(rng: Random, data: bytes) -> bytes:
    """Removes a piece."""
    at = rng.randint(0, len(data))
    return data[:at] + data[at + size(rng, 100) :]


def repeat_bytes(rng: Random, data: bytes) -> bytes:
    """Repeats a piece, up to a megabyte of it."""
    at = rng.randint(0, len(data))
    piece = data[at : at + size(rng, 2000)]
    return data[:at] + piece * min(size(rng, 10_000), 1_000_000 // (len(piece) or 1)) + data[at:]


def encode_otherwise(rng: Random, data: bytes) -> bytes:
    """Saves the text in another encoding."""
    encoding = rng.choice(("utf-16", "utf-32", "utf-8-sig", "cp037", "latin-1"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")


def random_bytes(rng: Random, data: bytes) -> bytes:
    """Replaces everything by random bytes."""
    return rng.randbytes(size(rng, len(data) + 1))


BYTE_MUTATIONS: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(insert_bytes, change_byte, truncate, delete_bytes, repeat_bytes, encode_otherwise, random_bytes),
)
"""Mutations of a file's content."""


def change_cell(rng: Random, text: str) -> str:
    """Replaces a value by an odd text."""
    cells = text.split(",")
    cells[rng.randrange(len(cells))] = rng.choice(
        (odd_text(rng), '"', '""', '"a\nb"', '"a"b', " 1", "1e999", "2024-02-30")
    )
    return ",".join(cells)


def change_separator(rng: Random, text: str) -> str:
    """Adds or removes commas, quotes and line ends."""
    at = rng.randint(0, len(text))
    return (
        text[:at]
        + rng.choice((",", ",,", '"', "\n", "\n\n", "\r", "\r\n", ";", "\t", "," * 5000))
        + text[at + rng.randint(0, 1) :]
    )


def change_header(rng: Random, text: str) -> str:
    """Changes the first line."""
    header, _, rest = text.partition("\n")
    names = header.split(",")
    names[rng.randrange(len(names))] = rng.choice((odd_text(rng), names[0], names[0].upper(), "a.b", "a b", "_c0"))
    return ",".join(names * size(rng, 50)) + "\n" + rest


def repeat_rows(rng: Random, text: str) -> str:
    """Repeats the rows."""
    header, _, rest = text.partition("\n")
    return header + "\n" + rest * size(rng, 500)


SEED_MUTATIONS: tuple[Callable[[Random, str], str], ...] = (change_cell, change_separator, change_header, repeat_rows)
"""Mutations of a seed's text."""


def rename(rng: Random, files: dict[str, bytes], path: str) -> None:
    """Changes the name, ending or folder of a file."""
    old = PurePosixPath(path)
    new = rng.choice(
        (
            old.with_name(rng.choice(NAMES) + old.suffix),
            old.with_name(old.stem + rng.choice((".SQL", ".yaml", ".txt", ".sql.bak", ".py", "", ".csv"))),
            PurePosixPath(rng.choice(("models", "seeds", "macros", "models/a/b", ".", "target", "logs"))) / old.name,
        )
    )
    files[new.as_posix()] = files.pop(path)


def copy(rng: Random, files: dict[str, bytes], path: str) -> None:
    """Copies a file to another path, or over another file."""
    target = rng.choice((f"models/copy/{PurePosixPath(path).name}", rng.choice(sorted(files))))
    files[target] = files[path]


def remove(rng: Random, files: dict[str, bytes], path: str) -> None:
    """Removes a file."""
    del files[path]


def below(rng: Random, files: dict[str, bytes], path: str) -> None:
    """Replaces a file by a folder that contains it."""
    files[f"{path}/{PurePosixPath(path).name}"] = files.pop(path)


FILE_MUTATIONS: tuple[Callable[[Random, dict[str, bytes], str], None], ...] = (rename, copy, remove, below)
"""Mutations of a project's files, each of one given file."""
