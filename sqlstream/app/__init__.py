"""One use case per file; each imports what it needs when it needs it."""
