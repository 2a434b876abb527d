"""Names in a query: which column each means, and what is wrong where none fits."""
