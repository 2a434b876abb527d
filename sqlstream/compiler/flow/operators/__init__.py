"""Builds the operators of a query from FROM, GROUP BY, JOIN and its other clauses."""
