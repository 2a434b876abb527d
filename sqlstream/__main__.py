"""`python -m sqlstream`."""

from __future__ import annotations

from sqlstream.cli.main import main

if __name__ == "__main__":
    main()
