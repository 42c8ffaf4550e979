"""Finds tools and plugins that cannot run, would be free of charge, or would expose a key."""

from collections.abc import Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from zoneinfo import ZoneInfo

from tollgate.routing.file.document import Where, YamlDocument
from tollgate.routing.file.price_checks import check_age, check_each
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.secret_checks import KeyRules, check_host, check_key, check_pins
from tollgate.routing.plugin_sections import OcrSection
from tollgate.routing.schema import ModelSection
from tollgate.routing.tool_sections import (
    ENGINE_HOSTS,
    DatetimeSection,
    ImageSection,
    ServerToolsSection,
    ToolPriceSection,
    WebSearchSection,
)


def check_server_tools(
    document: YamlDocument,
    tools: ServerToolsSection,
    models: Mapping[str, ModelSection],
    *,
    rules: KeyRules,
    today: date | None,
) -> Iterator[Problem]:
    """Yield the problems in `server_tools`; `models` are the models in production."""
    where: Where = ("server_tools",)
    if tools.web_search is not None:
        place: Where = (*where, "web_search")
        yield from _check_search(document, place, tools.web_search, rules)
        if tools.web_search.price is not None:
            yield from _check_call(document, place, tools.web_search.price, today)
    if tools.web_fetch is not None:
        yield from _check_call(document, (*where, "web_fetch"), tools.web_fetch.price, today)
    if tools.datetime is not None:
        yield from _check_timezone(document, (*where, "datetime"), tools.datetime)
    if tools.image is not None:
        yield from _check_image(document, (*where, "image"), tools.image, models)


def _check_search(
    document: YamlDocument, where: Where, search: WebSearchSection, rules: KeyRules
) -> Iterator[Problem]:
    engine = search.engine
    if engine is None:
        if not search.native:
            message = "web_search has neither engine nor native, so nothing would search"
            yield document.at_key(where, "R056", message, hint="write engine or native: true")
        for name in ("base_url", "key", "price", "private"):
            if getattr(search, name) is not None:
                message = f"web_search has {name}, but no engine that uses it"
                yield document.at_key((*where, name), "R056", message)
        return
    if search.price is None:
        message = f"web_search by {engine} has no price: it would be free to every key"
        yield document.at_key(where, "R030", message, hint="write call: 0 if free")
    if search.address is None:
        message = f"web_search has no base_url, which {engine} needs"
        yield document.at_key(where, "R042", message)
    if search.key is None and ENGINE_HOSTS[engine].needs_key:
        message = f"web_search has no key, which {engine} needs"
        yield document.at_key(where, "R042", message)
    yield from check_key(document, where, search.key, rules)
    yield from check_host(document, where, search, development=False)
    yield from check_pins(document, where, search, rules)


def check_ocr(
    document: YamlDocument, ocr: OcrSection, *, rules: KeyRules, today: date | None
) -> Iterator[Problem]:
    """Yield the problems in the section `ocr`."""
    where: Where = ("plugins", "pdf", "ocr")
    has_key = ocr.service.has_key
    for name in ("key", "model"):
        if has_key and getattr(ocr, name) is None:
            message = f"ocr has no {name}, which {ocr.engine} needs"
            yield document.at_key(where, "R042", message)
        if not has_key and getattr(ocr, name) is not None:
            message = f"ocr has a {name}, which {ocr.engine} does not use"
            yield document.at_key((*where, name), "R056", message)
    if has_key and ocr.region is not None:
        message = f"ocr has a region, which {ocr.engine} does not use"
        yield document.at_key((*where, "region"), "R056", message)
    yield from check_key(document, where, ocr.key, rules)
    yield from check_host(document, where, ocr, development=False)
    yield from check_pins(document, where, ocr, rules)
    yield from check_each(document, (*where, "price", "page"), ocr.price.page)
    yield from check_age(document, where, ocr.price.checked, today)


def _check_call(
    document: YamlDocument, where: Where, price: ToolPriceSection, today: date | None
) -> Iterator[Problem]:
    yield from check_each(document, (*where, "price", "call"), price.call)
    yield from check_age(document, where, price.checked, today)


def _check_timezone(
    document: YamlDocument, where: Where, section: DatetimeSection
) -> Iterator[Problem]:
    try:
        ZoneInfo(section.timezone)
    except (KeyError, OSError, ValueError):
        message = f"{section.timezone} is not a time zone of the IANA database"
        hint = "write a name such as Europe/Berlin"
        yield document.at_value((*where, "timezone"), "R056", message, hint=hint)


def _check_image(
    document: YamlDocument, where: Where, image: ImageSection, models: Mapping[str, ModelSection]
) -> Iterator[Problem]:
    place: Where = (*where, "model")
    model = models.get(image.model)
    if model is None:
        nearest = get_close_matches(image.model, models, n=1)
        hint = f': did you mean "{nearest[0]}"?' if nearest else ""
        yield document.at_value(place, "R021", f'"{image.model}" is not a model{hint}')
    elif model.kind != "image":
        message = f"{image.model} is of kind {model.kind}, which does not generate images"
        yield document.at_value(place, "R056", message)
