"""`contract export` and `contract import`: contracts in the Open Data Contract Standard."""
