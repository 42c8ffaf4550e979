"""Explanation of environment variables that are not valid settings."""

from pydantic import ValidationError

from tollgate.settings import Settings


def explain_invalid_settings(failure: ValueError) -> str | None:
    """Return which variables of `Settings` are invalid and why, or None for any other failure.

    The message leaves out values, since some are secrets.
    """
    if not isinstance(failure, ValidationError) or failure.title != Settings.__name__:
        return None
    wrong = [
        f"{error['loc'][0]}: {error['msg']}."
        for error in failure.errors(include_url=False, include_context=False, include_input=False)
    ]
    return "The environment has settings that cannot be read. " + " ".join(wrong)
