"""What makes the book: execution, pages, what they take from elsewhere."""
