"""Where a new model's lines go in a routing file: no other byte of it changes."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.cli.routing.model_entry import ModelEntry, Unplaceable, insert_model, render_entry
from tollgate.cli.routing.published_prices import Published
from tollgate.routing.file.document import read_document
from tollgate.routing.file.load import inspect
from tollgate.routing.price_sections import OverrideSection, PriceSection

HEAD = """version: 1
providers:
  near: { codec: openai_chat, transport: http_sse, base_url: "https://near.example" }
"""
RATES = "{ input: 1, output: 1, source: s, checked: 2026-11-20 }"
OFFER = f"[{{ provider: near, upstream: u, price: {RATES} }}]"
PRICE = PriceSection(
    input=Decimal("0.1"),
    output=Decimal(12),
    cache_read=Decimal("0.0125"),
    source="genai-prices 0.2.3",
    checked=date(2026, 11, 21),
)
LATER = OverrideSection.model_validate(
    {"when": {"from": date(2026, 12, 1)}, "price": {"input": Decimal(3)}}
)


def entry(slug: str = "acme/new", **changes: Any) -> ModelEntry:
    facts: dict[str, Any] = {
        "name": "New",
        "context": 1000,
        "max_output": 100,
        "input": ("text",),
        "supports": (),
        "provider": "near",
        "upstream": "new-1",
        "published": Published(
            upstream="new-1", context=1000, price=PRICE, overrides=(LATER,), unstatable=()
        ),
    }
    return ModelEntry(slug=slug, **{**facts, **changes})


def placed(folder: Path, content: str, added: ModelEntry) -> str:
    file = folder / "routing.yaml"
    file.write_bytes(content.encode())
    return insert_model(file, added)


def test_an_entry_is_written_as_a_person_would() -> None:
    assert "\n".join(render_entry(entry(input=("text", "pdf"), supports=("tools",)))) == (
        """acme/new:
  name: New
  context: 1000
  max_output: 100
  input: [text, pdf]
  supports: [tools]
  endpoints:
    - provider: near
      upstream: new-1
      price:
        input: 0.10
        output: 12.00
        cache_read: 0.0125
        source: genai-prices 0.2.3
        checked: 2026-11-21
      overrides:
        - when: { from: 2026-12-01 }
          price: { input: 3.00 }"""
    )


def test_it_goes_behind_its_authors_models_and_before_the_comment_on_the_next(
    tmp_path: Path,
) -> None:
    before = f"""{HEAD}models:
    acme/a: # the first
        {{ name: A, context: 9, max_output: 9, endpoints: {OFFER} }}
        # still about acme/a

    # about zeta/z
    zeta/z: {{ name: Z, context: 9, max_output: 9, endpoints: {OFFER} }}
"""
    after = placed(tmp_path, before, entry())
    above, _, below = after.partition("\n    acme/new:\n")
    assert above.endswith("# still about acme/a\n")
    assert below.split("price: { input: 3.00 }\n")[1].startswith("\n    # about zeta/z\n")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"{HEAD}models: {{}}\n", "no section `models`"),
        (HEAD, "no section `models`"),
        (f"{HEAD}models: {{ acme/a: {{}} }}\n", "no section `models`"),
        (f"{HEAD}models:\n  acme/new: {{}}\n", "acme/new exists already: .*routing.yaml:5:3"),
        ("models: [", "cannot be read"),
        ("\xff", "no section `models`"),
    ],
)
def test_a_file_that_has_no_place_for_it_is_refused(
    tmp_path: Path, content: str, words: str
) -> None:
    with pytest.raises(Unplaceable, match=words):
        placed(tmp_path, content, entry())


# Whatever a person may write around models: comments, blank lines, quotes, widths.
noise = st.lists(
    st.sampled_from(["", "  # said of the next", "# far out", "    # far in", "   "]), max_size=3
)
ONE_LINE = "  {slug}: {{ name: 'x  y', context: 9,   max_output: 9, endpoints: {offer} }} # why"
QUOTED = """\
  "{slug}":
      name: "x" # said
      context: 9
      max_output: 9
      endpoints: {offer}"""
SPREAD = """\
  {slug}:
    name: x
    context: 9
    max_output: 9
    endpoints:
    # the only one
    - {{ provider: near, upstream: u,
        price: {{ input: 1, output: 1, source: s, checked: 2026-11-20 }} }}"""
spelled = st.sampled_from([ONE_LINE, QUOTED, SPREAD])
slugs = st.lists(
    st.sampled_from(["acme/a", "acme/b", "zeta/a", "beta/a", "beta/b"]),
    min_size=1,
    max_size=5,
    unique=True,
)


@given(st.data(), slugs, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_every_line_that_was_there_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    names: list[str],
    newline: str,
    ends: bool,
) -> None:
    lines = [*HEAD.splitlines(), "models:"]
    for slug in names:
        lines += data.draw(noise)
        lines += data.draw(spelled).format(slug=slug, offer=OFFER).split("\n")
    lines += data.draw(noise)
    lines += data.draw(st.sampled_from([[], ["aliases: {} # none"]]))
    before = newline.join(lines) + (newline if ends else "")
    folder = tmp_path_factory.mktemp("file")
    after = placed(folder, before, entry())
    block = newline.join(["", *(f"  {line}" for line in render_entry(entry())), ""])
    assert after.count(block) == 1
    assert after.replace(block, "", 1) in (before, before + newline)
    (folder / "routing.yaml").write_bytes(after.encode())
    written = inspect(folder / "routing.yaml", dev=False)
    assert written.errors == ()
    assert written.routing is not None
    assert set(written.routing.models) == {*names, "acme/new"}


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=30))
def test_any_name_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    file = tmp_path_factory.mktemp("file") / "routing.yaml"
    file.write_text(f"{HEAD}models:\n  acme/a: 1\n", encoding="utf-8")
    file.write_text(insert_model(file, entry(name=name)), encoding="utf-8")
    document = read_document(file, "routing.yaml")
    assert document.problems == []
    assert document.value(("models", "acme/new", "name")) == name
