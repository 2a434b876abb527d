"""Use cases on what a query has stored: its checkpoint and its output."""
