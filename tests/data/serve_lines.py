"""Serves the lines of a text file over TCP, for Spark's socket source and for the word count example.

    serve_lines.py [--port 9999] [--file wordcount/lines.txt] [--rate 50] [--once]

Each client that connects to 127.0.0.1 gets all lines from the first, `--rate` a second (0: without a pause), and an
open connection until it goes away. With `--once` the server ends as soon as one client has been sent all lines; one
that leaves before, such as a check that the port is open, does not count. `--port 0` takes a free port. The first
line printed is `listening on 127.0.0.1:PORT`.
"""

from __future__ import annotations

import argparse
import contextlib
import socketserver
import time
from pathlib import Path

HERE = Path(__file__).parent


class LineServer(socketserver.ThreadingTCPServer):
    """A server on the loopback interface that knows what to send, how fast, and whether to stay."""

    allow_reuse_address = True

    def __init__(self, port: int, lines: list[bytes], lines_per_second: float, once: bool) -> None:
        self.lines = lines
        self.lines_per_second = lines_per_second
        self.once = once
        self.daemon_threads = not once  # with once, the end waits for the clients' threads
        super().__init__(("127.0.0.1", port), LineHandler)


class LineHandler(socketserver.StreamRequestHandler):
    """One client's connection."""

    server: LineServer

    def handle(self) -> None:
        """Send the lines, then wait for the client to go; called once for each client, in a new thread."""
        with contextlib.suppress(ConnectionError):
            for line in self.server.lines:
                self.wfile.write(line)
                if self.server.lines_per_second:
                    time.sleep(1 / self.server.lines_per_second)
            if self.server.once:
                self.server.shutdown()
            while not self.server.once and self.rfile.read(1024):
                pass


def serve(server: LineServer) -> None:
    """Serve until interrupted or, with `once`, until a client has all lines."""
    with server, contextlib.suppress(KeyboardInterrupt):
        print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever(poll_interval=0.05)


def main() -> None:
    """Parse the arguments and serve."""
    parser = argparse.ArgumentParser(description="Serve the lines of a text file over TCP.")
    parser.add_argument("--port", type=int, default=9999, help="0 takes a free port")
    parser.add_argument("--file", type=Path, default=HERE / "wordcount" / "lines.txt")
    parser.add_argument("--rate", type=float, default=50, help="lines per second; 0: no pause")
    parser.add_argument("--once", action="store_true", help="end after a client has all lines")
    options = parser.parse_args()
    lines = [line + b"\n" for line in options.file.read_bytes().splitlines()]
    serve(LineServer(options.port, lines, options.rate, options.once))


if __name__ == "__main__":
    main()
