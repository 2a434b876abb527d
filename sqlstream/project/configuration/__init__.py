"""What YAML files say: documents, settings, targets, and what is wrong in them."""
