"""What holds for every test."""

from hypothesis import settings

# A deadline is an assertion about time, which a busy machine breaks and no code does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
