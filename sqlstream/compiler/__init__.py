"""Pure compilation: from a `Project` to compiled SQL, a graph, a selection and findings."""
