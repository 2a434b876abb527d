"""Writes a range of history as a batch of a query."""
