"""The HTTP servers of pages, metrics and health. The page gets its data through `protocol.py`."""
