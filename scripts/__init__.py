"""Tools that execute, check and build the book."""
