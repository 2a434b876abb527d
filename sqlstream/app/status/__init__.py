"""`sqlstream status`: the queries of a project with their lag, from their runs and checkpoints."""
