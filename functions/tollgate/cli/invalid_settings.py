"""Say which variables of the environment hold no setting."""

from pydantic import ValidationError

from tollgate.settings import Settings


def explain_invalid_settings(failure: ValueError) -> str | None:
    """Return what is wrong with the variables of `Settings`, None for any other failure.

    Values are left out, since some are secrets.
    """
    if not isinstance(failure, ValidationError) or failure.title != Settings.__name__:
        return None
    wrong = [
        f"{error['loc'][0]}: {error['msg']}."
        for error in failure.errors(include_url=False, include_context=False, include_input=False)
    ]
    return "The environment has settings that cannot be read. " + " ".join(wrong)
