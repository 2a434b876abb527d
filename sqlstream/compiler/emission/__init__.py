"""When a query emits its rows."""
