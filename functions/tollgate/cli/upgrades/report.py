"""The effects of another release on a gateway's repository, and the reasons to refuse it."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tollgate.cli.catalog.release import NotARelease, build_release, take_release
from tollgate.cli.options import utc_today
from tollgate.cli.routing.permissions import write_permissions
from tollgate.cli.routing.plan import review_revisions
from tollgate.cli.routing.plan_text import as_text
from tollgate.cli.routing.revisions import read_file
from tollgate.cli.upgrades.schema_changes import find_deprecated_keys
from tollgate.cli.upgrades.template_changes import (
    NamedChanges,
    find_lost_data,
    list_template_changes,
    load_template,
)
from tollgate.cli.upgrades.wheels import FetchedRelease, NoRelease, read_item_versions
from tollgate.installation import part
from tollgate.routing.file.document import read_document
from tollgate.routing.file.load import inspect
from tollgate.routing.file.permissions import compile_permissions
from tollgate.routing.review.traffic import RecordedRequest
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings

_SCHEMA: Final = "routing.v1.json"
_HERE: Final = Path(__file__).resolve().parents[2]


def refuse_upgrade(release: FetchedRelease) -> None:
    """Raise NoRelease if stored items or data would be lost or misread with a release."""
    here = read_item_versions(_HERE / "stores" / "item_versions.py")
    there = release.item_versions()
    if here.written > there.read:
        raise NoRelease(
            f"{release.version} reads stored items up to version {there.read}, and this release "
            f"writes version {here.written}: it would misread the store"
        )
    if there.written > here.read:
        raise NoRelease(
            f"{release.version} writes stored items of version {there.written}, and this release "
            f"reads version {here.read} at most: upgrade to a release in between first"
        )
    before = load_template(part("template").read_text(encoding="utf-8"))
    after = load_template(release.part("template").read_text(encoding="utf-8"))
    lost = list(find_lost_data(before, after))
    if lost:
        raise NoRelease(f"{release.version} would lose stored data: {'; '.join(lost)}")


def list_changes_of(release: FetchedRelease, file: Path) -> Iterator[NamedChanges]:
    """Yield the changes of the template, and the keys of a routing file that a release refuses."""
    routing = inspect(file, dev=False, variables=Settings().variables).production
    before, after = (
        load_template(_granting(template.read_text(encoding="utf-8"), routing))
        for template in (part("template"), release.part("template"))
    )
    yield from list_template_changes(before, after)
    schema = json.loads((release.part("schema") / _SCHEMA).read_bytes())
    content = read_document(file, file.as_posix()).content
    keys = tuple(find_deprecated_keys(content, schema))
    if keys:
        yield NamedChanges(f"keys of {file.name}", keys)


def _granting(template: str, routing: Routing | None) -> str:
    """Return a template with the permissions that a routing file needs, as a deploy writes them."""
    return (
        template if routing is None else write_permissions(template, compile_permissions(routing))
    )


def plan_catalog(
    release: FetchedRelease, file: Path, requests: Iterator[RecordedRequest] | None
) -> str | None:
    """Return the plan of a release's catalog for a routing file, or the reason why there is none.

    Returns None if the file takes nothing from a catalog, or if nothing changes.
    """
    if read_document(file, file.as_posix()).value(("catalog",)) is None:
        return None
    try:
        changed = take_release(file, build_release(release.part("routing")))
    except (NotARelease, ValueError) as unusable:
        return f"{unusable}."
    if not changed:
        return None
    today = utc_today()
    base = read_file(file, "now", today)
    with TemporaryDirectory() as folder:
        for path in inspect(file, dev=True, variables=Settings().variables).files:
            _, text = changed.get(path, ("", path.read_text(encoding="utf-8")))
            written = Path(folder) / path.resolve().relative_to(file.parent.resolve())
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_text(text, encoding="utf-8")
        head = read_file(Path(folder) / file.name, f"catalog of {release.version}", today)
    if head.routing is None:
        # The catalog may lack an included provider, or have keys that only its own version reads.
        return f"This version cannot use that catalog: {head.errors[0].message}"
    return as_text(review_revisions(base, head, requests, today))
