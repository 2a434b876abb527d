"""dbt's node selection as pure functions over the graph."""
