"""The validators that the build has prepared, for models that a first request validates."""

import pickle
from pathlib import Path
from typing import Final

from pydantic_core import SchemaValidator

VALIDATORS_FILE: Final = "validators.pickle"


def install_validators(folder: Path) -> None:
    """Give each model of the build's file its validator; do nothing in a folder without the file.

    Making the schema of a validator takes much longer than making the validator from it.
    """
    file = folder / VALIDATORS_FILE
    if not file.exists():
        return
    # The file is part of the code, as bytecode is: the build wrote it beside this module.
    for model, schema, config in pickle.loads(file.read_bytes()):  # noqa: S301
        model.__pydantic_validator__ = SchemaValidator(schema, config)
