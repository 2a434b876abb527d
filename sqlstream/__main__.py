"""`python -m sqlstream`."""

from __future__ import annotations

from sqlstream.cli.main import program

if __name__ == "__main__":
    program()
