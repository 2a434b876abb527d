"""Rules on the options of sources and sinks."""
