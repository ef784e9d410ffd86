"""What checks it."""
