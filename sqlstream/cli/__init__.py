"""The command line: parse arguments, make one call, print, exit code."""

from __future__ import annotations

from sqlstream.cli.first_process import end_on_signals

end_on_signals()  # first: loading the modules of the commands takes up to a second
