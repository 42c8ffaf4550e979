"""The requirements.txt of a gateway's repository: a version of Tollgate, and its locked libraries.

The lines after the two distributions are the lock that the release contains, so they change only
with the version.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from tollgate import DISTRIBUTION

# The distribution that people install, and the distribution that contains the code.
DISTRIBUTIONS: Final = ("tollgate-llm", DISTRIBUTION)
_PIN: Final = re.compile(
    r"^(?P<name>tollgate-llm(?:-slim)?)==(?P<version>\S+)(?P<hashes>(?:\s*\\?\s*--hash=\S+)*)", re.M
)
_HEAD: Final = """\
# Written by `tollgate upgrade`, which changes the version and the hashes. Install it with
# pip install --require-hashes --only-binary :all: --requirement requirements.txt
"""


class NotRequirements(ValueError):
    """Raised for a requirements.txt that does not pin one version of Tollgate."""


class Pin(Struct, frozen=True):
    """A distribution's version and the SHA-256 of its wheel."""

    version: str
    sha256: str


def read_version(text: str) -> str:
    """Return the version that a requirements.txt pins; raise NotRequirements if it pins none."""
    versions = {found["version"].rstrip("\\") for found in _PIN.finditer(text)}
    if len(versions) != 1:
        found = " and ".join(sorted(versions)) or "no version"
        raise NotRequirements(f"requirements.txt pins {found} of {DISTRIBUTIONS[0]}: pin one")
    return versions.pop()


def render_requirements(pins: Mapping[str, Pin], lock: str) -> str:
    """Return the text of a requirements.txt with these distributions and a release's lock, without
    its comments.
    """
    lines = [
        f"{name}=={pin.version} \\\n    --hash=sha256:{pin.sha256}\n" for name, pin in pins.items()
    ]
    # The comments of a lock name files of the release that made it.
    locked = (line for line in lock.splitlines(True) if not line.lstrip().startswith("#"))
    return _HEAD + "".join((*lines, *locked))
