"""The shared module of the book."""
