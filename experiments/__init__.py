"""The heavy runs of the book: what is run (`*.toml`) and how one trial is drawn (`*.py`)."""
