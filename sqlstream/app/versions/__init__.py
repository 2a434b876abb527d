"""Versions of a query in parallel: promote, rollback, history, and the plain names that readers use."""
