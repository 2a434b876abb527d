"""Files to a validated `Project`: YAML with positions, every error collected."""
