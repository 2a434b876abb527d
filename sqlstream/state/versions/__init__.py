"""The stored versions of a query: which one is current, which one runs beside it, and where each writes."""
