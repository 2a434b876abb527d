"""Renders the named attacks from attacks.txt one after the other and prints each outcome as one line of JSON."""

from __future__ import annotations

import json
import re
import resource
import sys
from pathlib import Path

from sqlstream.errors import FindingsError
from tests.fuzz.peak_memory import peak_megabytes
from tests.support.rendering import model, renderer

ADDRESS_SPACE = 4 << 30
"""Bytes: with this limit, an attack that succeeds fails with MemoryError instead of exhausting the machine's memory."""


def read_attacks() -> dict[str, str]:
    """Returns the templates by name. What stands between two `@` is repeated 1,500 times."""
    sections = (Path(__file__).parent / "attacks.txt").read_text().split("\n## ")[1:]
    attacks = (section.partition("\n") for section in sections)
    return {name: re.sub("@(.*)@", lambda match: match[1] * 1_500, text) for name, _, text in attacks}


def measure(names: list[str]) -> None:
    """Prints name, code (None without a finding), line, and the process's peak memory in megabytes."""
    attacks = read_attacks()
    made = renderer()
    for name in names or attacks:
        code, line = None, 0
        try:
            made.render(model(attacks[name]))
        except FindingsError as error:
            (finding,) = error.findings
            code, line = finding.code, finding.location.line if finding.location else 0
        print(json.dumps([name, code, line, peak_megabytes()]), flush=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    measure(sys.argv[1:])
