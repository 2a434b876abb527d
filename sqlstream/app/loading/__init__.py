"""Files to a compiled project, and the nodes that a selection names."""
