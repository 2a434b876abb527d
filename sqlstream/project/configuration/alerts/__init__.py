"""The keys of `alerts:`: rules and where alerts go."""
