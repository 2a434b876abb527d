"""The plain names of outputs, under which readers always find the current version of a query."""
