"""Results that do not belong to a run: rows of a preview, columns of a source, outcomes of unit tests."""
