"""`tollgate catalog refresh`: update the prices in a routing file, for review."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from difflib import unified_diff
from pathlib import Path
from typing import Final

import click

from tollgate.cli.catalog.edits import FileEdits, NotEditable
from tollgate.cli.catalog.evidence import (
    Evidence,
    NoEvidence,
    gather_evidence,
    read_evidence,
    write_evidence,
)
from tollgate.cli.catalog.facts import PublishedFacts
from tollgate.cli.catalog.price_map import NotAPriceMap, read_price_map
from tollgate.cli.catalog.release import (
    NotARelease,
    installed_release,
    read_release,
    take_release,
    write_release,
)
from tollgate.cli.catalog.verdicts import Verdict, judge_file
from tollgate.cli.options import routing_file, utc_today
from tollgate.cli.routing.model_entry import render_overrides, yaml_dollars, yaml_text
from tollgate.cli.tables import exact
from tollgate.routing.file.catalog_parts import CATALOG_FILE
from tollgate.routing.file.document import Where, read_document
from tollgate.routing.file.load import inspect
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.price_sections import RatesSection
from tollgate.settings import Settings

EVIDENCE: Final = Path("infra/catalog/evidence.json")
_CHECKED_DAYS_MAX: Final = 30
_RATE_ORDER: Final = tuple(RatesSection.model_fields)


@click.group("catalog")
def catalog_commands() -> None:
    """Update a routing file to published prices, limits and retirement days."""


catalog_commands.add_command(write_release)


@catalog_commands.command(epilog="Example: tollgate catalog refresh --provider openai --write")
@routing_file
@click.option(
    "--price-map",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="litellm wheel with a price map; by default, the stored evidence of an earlier wheel is "
    "used. `python -m pip download --no-deps litellm` fetches a wheel.",
)
@click.option(
    "--evidence",
    "stored",
    default=lambda: EVIDENCE if EVIDENCE.parent.is_dir() else Path(EVIDENCE.name),
    show_default=f"{EVIDENCE.as_posix()}, or else {EVIDENCE.name}",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that stores the published facts.",
)
@click.option(
    "--release",
    "newer",
    metavar="FILE",
    help="Replace the catalog.yaml of a gateway's repository, and its pin in FILE, by this release "
    "before the comparison of the other prices; `installed` is the release of this version.",
)
@click.option("--provider", help="Check only this provider.")
@click.option("--model", "slug", help="Check only this model.")
@click.option("--write", is_flag=True, help="Write the changes and the evidence.")
def refresh(
    file: Path,
    price_map: Path | None,
    stored: Path,
    *,
    newer: str | None,
    provider: str | None,
    slug: str | None,
    write: bool,
) -> None:
    """Compare FILE with genai-prices and litellm's price map, and show the necessary changes.

    A price changes if all publishers agree on another price. If they disagree, the price stays, and
    its `source` says so. Retirement days are added. Differing limits and capabilities are listed
    for a person to decide. The exit status is 1 if changes are necessary but not written.
    """
    today = utc_today()
    if newer is not None and not _take(file, newer, write=write):
        raise SystemExit(1)
    inspection = inspect(file, dev=False, variables=Settings().variables)
    if inspection.routing is None:
        raise click.ClickException(
            f"{file.as_posix()} must not be used.\n{InvalidRouting(inspection.errors)}"
        )
    try:
        earlier = read_evidence(stored) if stored.exists() else None
        mapped = read_price_map(price_map) if price_map else None
    except (NotAPriceMap, NoEvidence) as unusable:
        raise click.ClickException(str(unusable)) from unusable
    evidence = gather_evidence(inspection.routing, today, mapped, earlier)
    own = [path for path in inspection.files if path.name != CATALOG_FILE]
    stated = _stated_endpoints(own)
    verdicts = [
        verdict
        for verdict in judge_file(inspection.routing, evidence)
        if (verdict.model, verdict.index) in stated
        and slug in (None, verdict.model)
        and provider in (None, verdict.endpoint.provider)
    ]
    if not verdicts and (slug or provider):
        raise click.UsageError("the file has no endpoint for this model and provider")
    if not verdicts:
        click.echo(f"{file.as_posix()} has no prices outside {CATALOG_FILE}")
        return
    changed, by_hand = _edited(own, verdicts, today)
    click.echo("\n".join(render_verdicts(verdicts, evidence, by_hand)))
    for path, (before, after) in changed.items():
        click.echo("\n".join(_diff(path, before, after)))
    if write:
        _write(file, {path: after for path, (_, after) in changed.items()})
        stored.parent.mkdir(parents=True, exist_ok=True)
        stored.write_text(write_evidence(evidence), encoding="utf-8")
    elif changed:
        raise SystemExit(1)


def render_verdicts(
    verdicts: Sequence[Verdict], evidence: Evidence, by_hand: Mapping[str, str]
) -> Iterator[str]:
    """Yield the lines of a report: decisions to make, changes, unchanged prices, and totals."""
    for verdict in verdicts:
        if verdict.undecided:
            yield f"! {verdict.place}: the publishers disagree, and none has the file's price"
            yield from _differences(verdict)
    for endpoint, reason in by_hand.items():
        yield f"! {endpoint}: edit by hand: {reason}"
    for verdict in verdicts:
        if verdict.price is not None:
            rates = ", ".join(f"{name} {exact(rate)}" for name, rate in verdict.price.rates.items())
            yield f"~ {verdict.place}: {rates} ({verdict.source})"
    for verdict in verdicts:
        if verdict.retires is not None:
            yield f"~ {verdict.place}: retires {verdict.retires} ({verdict.retires_source})"
    for verdict in verdicts:
        if verdict.price is not None:
            continue
        if verdict.differing and not verdict.undecided:
            first = verdict.source.partition(";")[0]
            yield f"? {verdict.place}: publishers disagree; the file has the price from {first}"
            yield from _differences(verdict)
        elif not verdict.agreeing and not verdict.differing:
            price = verdict.endpoint.price
            origin = f"{price.source}, {price.checked}"
            yield f"? {verdict.place}: no published price; the file's price is from {origin}"
    for verdict in verdicts:
        if verdict.notes:
            yield f"? {verdict.place}: {'; '.join(verdict.notes)}"
    labels = ", ".join(map(evidence.label, evidence.publishers))
    lone = [verdict for verdict in verdicts if len(verdict.agreeing) == 1]
    agreed = sum(len(verdict.agreeing) > 1 for verdict in verdicts)
    undecided = sum(verdict.undecided for verdict in verdicts)
    unpublished = sum(not verdict.agreeing and not verdict.differing for verdict in verdicts)
    yield (
        f"{len(verdicts)} endpoints compared with {labels}: {agreed} agreed by two, "
        f"{len(lone)} stated by one, {undecided} undecided, {unpublished} not published"
    )
    if lone:
        disputed = sum(bool(verdict.differing) for verdict in lone)
        unknown = sum(
            not verdict.differing and len(evidence.may_state(verdict.endpoint)) == 1
            for verdict in lone
        )
        yield (
            f"of the {len(lone)} stated by one: {disputed} disputed by another, {unknown} from "
            f"providers without another publisher, {len(lone) - disputed - unknown} for models "
            "that no other publisher lists"
        )


def _differences(verdict: Verdict) -> Iterator[str]:
    for label, differences in verdict.differing.items():
        for found in differences:
            published = f"{label} has {exact(found.theirs)}, {found.when}"
            yield f"    {found.rate} {exact(found.ours)}, {published}"


def _take(file: Path, newer: str, *, write: bool) -> bool:
    """Show a release's changes, or write them; return False if some are not written."""
    try:
        taken = installed_release() if newer == "installed" else read_release(Path(newer))
        changed = take_release(file, taken)
    except (NotARelease, NotEditable, OSError) as refused:
        raise click.ClickException(f"{refused}; nothing is written") from refused
    for path, (before, after) in changed.items():
        click.echo("\n".join(_diff(path, before, after)))
    if write:
        _write(file, {path: after for path, (_, after) in changed.items()})
    return write or not changed


def _stated_endpoints(files: Sequence[Path]) -> set[tuple[str, int]]:
    """Return the model and index of each endpoint that the files themselves define."""
    stated: set[tuple[str, int]] = set()
    for path in files:
        for where in read_document(path, path.as_posix()).values:
            match where:
                case ("models", str(slug), "endpoints", int(index)):
                    stated.add((slug, index))
                case _:
                    pass
    return stated


def _edited(
    files: Sequence[Path], verdicts: Sequence[Verdict], today: date
) -> tuple[dict[Path, tuple[str, str]], dict[str, str]]:
    """Return the text of each changed file before and after the change, and the reasons why other
    endpoints need a person.
    """
    changed: dict[Path, tuple[str, str]] = {}
    by_hand: dict[str, str] = {}
    for path in files:
        document = read_document(path, path.as_posix())
        with path.open(encoding="utf-8", newline="") as opened:
            text = opened.read()
        edits = FileEdits(text)
        for verdict in verdicts:
            if ("models", verdict.model) not in document.keys:
                continue
            try:
                _edit(edits, verdict, today)
            except NotEditable as reason:
                by_hand[verdict.place] = str(reason)
        if (after := edits.result()) != text:
            changed[path] = (text, after)
    return changed, by_hand


def _edit(edits: FileEdits, verdict: Verdict, today: date) -> None:
    where: Where = ("models", verdict.model, "endpoints", verdict.index)
    if verdict.price is not None:
        _edit_price(edits, where, verdict, verdict.price)
    if verdict.retires is not None:
        value = f"{verdict.retires} # {verdict.retires_source}, {today}"
        edits.set_value(where, "retires", value, after=("provider", "upstream", "max_output"))
    age = today - verdict.endpoint.price.checked
    if verdict.is_edited or (verdict.agreeing and age.days > _CHECKED_DAYS_MAX):
        inside = (*where, "price")
        edits.set_value(inside, "source", yaml_text(verdict.source), after=("input",))
        edits.set_value(inside, "checked", today.isoformat(), after=("source",))


def _edit_price(edits: FileEdits, where: Where, verdict: Verdict, price: PublishedFacts) -> None:
    # A rate that no publisher has is kept, so that a refresh never makes a class of tokens free.
    for index, name in enumerate(_RATE_ORDER):
        if name in price.rates:
            value = yaml_dollars(price.rates[name])
            edits.set_value((*where, "price"), name, value, after=_RATE_ORDER[:index] or ("input",))
    if price.overrides or verdict.endpoint.overrides:
        lines = list(render_overrides([each.section for each in price.overrides]))
        if not lines:
            raise NotEditable("overrides are no longer published")
        edits.set_block(where, "overrides", lines, after="price")


def _write(main: Path, contents: Mapping[Path, str]) -> None:
    """Write the files; restore all of them if the result has errors."""
    before = {path: path.read_bytes() if path.exists() else None for path in contents}
    for path, content in contents.items():
        path.write_text(content, encoding="utf-8", newline="")
    inspection = inspect(main, dev=False, variables=Settings().variables)
    if inspection.errors:
        for path, content_before in before.items():
            if content_before is None:
                path.unlink()
            else:
                path.write_bytes(content_before)
        raise click.ClickException(f"nothing is written.\n{InvalidRouting(inspection.errors)}")


def _diff(path: Path, before: str, after: str) -> Iterator[str]:
    name = path.as_posix()
    return unified_diff(before.splitlines(), after.splitlines(), name, name, lineterm="")
