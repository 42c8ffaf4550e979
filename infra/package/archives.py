"""Archives of the built functions: `python -m infra.package.archives BUILD FOLDER`.

CloudFormation takes a function from a ZIP file in a bucket.
"""

import sys
import zipfile
from pathlib import Path
from typing import Final

from infra.artefact.build import FUNCTIONS

# The earliest time that the format can state: the same files become the same bytes.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    """Write an archive of each function."""
    build, folder = map(Path, sys.argv[1:])
    for name in FUNCTIONS:
        write_archive(build / name, folder / f"tollgate-{name}.zip")


def write_archive(source: Path, archive: Path) -> None:
    """Write all files of a folder into a ZIP file, in a fixed order and with a fixed time."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as written:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(file.relative_to(source).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # Lambda runs the wrapper script only if its mode says so.
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            entry.external_attr = (0o100000 | mode) << 16
            written.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    main()
