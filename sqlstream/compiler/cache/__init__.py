"""Results of a compilation that the next one reuses, so that unchanged files are not rendered or parsed again."""
