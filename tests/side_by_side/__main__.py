"""`python -m tests.side_by_side write|settle|golden`: this tree's part in a test of two releases.

`write` and `settle` work on the store that a JSON file names, in which `write` notes what it left.
`golden` writes this version's items, and the resources with data, into tests/released, for every
later version to keep.
"""

import asyncio
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.ministack import running_ministack
from tests.side_by_side.release import running_release
from tests.side_by_side.settle import settle_everything
from tests.side_by_side.tables import TABLES, dump
from tests.side_by_side.write import WRITTEN_S, write_everything
from tollgate.cli.upgrades.template_changes import REPLACING, load_template

RESOURCES: Final = Path(__file__).parents[1] / "released" / "resources.json"
GOLDEN: Final = Path(__file__).parents[1] / "released" / "items.json"


async def work(command: str, store: dict[str, Any]) -> None:
    """Write or settle everything in a store."""
    objects = Path(store["objects"])
    async with running_release(store["url"], store["tables"], objects, WRITTEN_S) as release:
        if command == "settle":
            await settle_everything(release, store["left"])
            return
        store["left"] = await write_everything(release)
        if command == "golden":
            contents = await dump(release.stores.client, store["tables"], objects)
            text = json.dumps({"left": store["left"]} | contents, indent=1, sort_keys=True)
            GOLDEN.write_text(text + "\n")


def stored_resources() -> dict[str, Any]:
    """Return the part of the template that stores data."""
    template = load_template((Path(__file__).parents[2] / "infra" / "template.yaml").read_text())
    resources: Any = template["Resources"]
    return {"Resources": {name: it for name, it in resources.items() if it["Type"] in REPLACING}}


def main() -> None:
    """Run the command."""
    if sys.argv[1:] == ["golden"]:
        with TemporaryDirectory() as folder, running_ministack(Path(folder)) as url:
            names = {table: table for table in TABLES}
            objects = Path(folder) / "objects"
            objects.mkdir()
            RESOURCES.write_text(json.dumps(stored_resources(), indent=1) + "\n")
            asyncio.run(work("golden", {"url": url, "tables": names, "objects": str(objects)}))
        return
    command, file = sys.argv[1], Path(sys.argv[2])
    store = json.loads(file.read_text())
    asyncio.run(work(command, store))
    file.write_text(json.dumps(store))


if __name__ == "__main__":
    main()
