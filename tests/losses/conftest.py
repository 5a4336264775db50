"""Hypothesis without its deadline: the first call of an operation in a busy process takes longer than 0.2 s."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
