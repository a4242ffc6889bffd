"""Numbers into words, tables and pictures."""
