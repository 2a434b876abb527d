"""The server of the page: HTTP, live updates, access. Gets its data through `protocol.py`."""
