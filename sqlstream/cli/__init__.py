"""The command line: parse arguments, make one call, print, exit code."""
