"""Results that are no run: rows to look at, columns of a source, outcomes of unit tests."""
