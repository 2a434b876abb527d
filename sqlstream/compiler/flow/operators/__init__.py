"""The operators of a query: what FROM, GROUP BY, JOIN and the like become."""
