"""The contents of YAML files: documents, settings, targets, and their errors."""
