"""`sqlstream docs`: the documentation site of a project, from its compiled form."""
