"""The models that take a model's place: who they are decides what a route promises of them.

Keeps C50.
"""

from itertools import islice

import pytest

from tollgate.routing.lifecycle import SuccessionSection, list_heirs


def handing_on(successor: str | None, after: str | None = "successor") -> SuccessionSection:
    return SuccessionSection.model_validate({"successor": successor, "after_retirement": after})


MODELS = {
    "acme/first": handing_on("acme/second"),
    "acme/second": handing_on("acme/third"),
    "acme/third": handing_on("acme/fourth", "refuse"),
    "acme/fourth": handing_on(None, None),
    "acme/named-only": handing_on("acme/fourth", None),
    "acme/one": handing_on("acme/other"),
    "acme/other": handing_on("acme/one"),
    "acme/itself": handing_on("acme/itself"),
    "acme/lost": handing_on("acme/nowhere"),
}


@pytest.mark.parametrize(
    ("slug", "heirs"),
    [
        ("acme/first", ["acme/second", "acme/third"]),
        ("acme/third", []),
        ("acme/fourth", []),
        ("acme/named-only", []),
        # The check refuses circles, and has to come to an end with them too.
        ("acme/one", ["acme/other"]),
        ("acme/itself", []),
        ("acme/lost", ["acme/nowhere"]),
        ("acme/nowhere", []),
    ],
)
def test_c50_heirs_are_the_models_that_are_handed_on_to(slug: str, heirs: list[str]) -> None:
    assert list(islice(list_heirs(slug, MODELS.get), len(MODELS))) == heirs
