"""From files to a compiled project, and from selectors to its nodes."""
