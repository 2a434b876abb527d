"""Resolves the names in a query to columns, and describes the names that do not resolve."""
