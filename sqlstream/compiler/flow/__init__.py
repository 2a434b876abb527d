"""Analyzes queries without Spark: their operators as a tree, with the columns that flow through them."""
