"""Prepare, start, supervise and stop queries."""
