"""The agents' programs, which `make test` does not install."""

import os
import shutil

import pytest


def find_agent(name: str, package: str) -> str:
    """Return the path of an agent; the test is skipped where there is none.

    TOLLGATE_AGENTS names the folder of the programs, else they are looked for in the path.
    """
    found = shutil.which(name, path=os.environ.get("TOLLGATE_AGENTS"))
    if found is None:
        pytest.skip(f"no {name}: install the npm package {package}, or set TOLLGATE_AGENTS")
    return found
