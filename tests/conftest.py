"""What every test starts from."""

from hypothesis import settings

settings.register_profile("book", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("book")
