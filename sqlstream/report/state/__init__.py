"""What a query has stored, as text and JSON: rows of its state, its versions, its output files."""
