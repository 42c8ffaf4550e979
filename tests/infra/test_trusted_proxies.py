"""The parameter that names the proxies before the API.

Keeps C60.
"""

import re

import pytest

from tests.infra.translation import Stack
from tollgate.settings import Settings

VARIABLE = "TOLLGATE_TRUSTED_PROXIES"


def test_c60_the_functions_that_know_callers_know_the_proxies(stack: Stack) -> None:
    named = {name for name in stack.functions if VARIABLE in stack.environment(name)}
    assert named == {"ChatFunction", "ApiFunction", "LoginFunction"}
    for name in named:
        assert stack.environment(name)[VARIABLE] == {"Ref": "TrustedProxies"}


def test_c60_the_functions_that_serve_keys_know_the_pace_of_unknown_callers(
    stack: Stack,
) -> None:
    variable = "TOLLGATE_UNKNOWN_CALLER_RPM"
    named = {name for name in stack.functions if variable in stack.environment(name)}
    assert named == {"ChatFunction", "ApiFunction"}
    for name in named:
        assert stack.environment(name)[variable] == {"Ref": "UnknownCallerRpm"}


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("", True),
        ("10.0.0.0/8", True),
        ("255.255.255.255/32", True),
        ("10.0.0.0", False),
        ("0.0.0.0/0", False),
        ("10.0.0.256/24", False),
        ("10.0.0.0/8,10.1.0.0/16", False),
        ("2001:db8::/32", False),
    ],
)
def test_c60_the_parameter_takes_what_the_setting_takes(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, text: str, accepted: bool
) -> None:
    parameter = stack.parameters["TrustedProxies"]
    assert bool(re.search(parameter["AllowedPattern"], text)) is accepted
    if accepted:
        assert len(text) <= parameter["MaxLength"]
        monkeypatch.setenv(VARIABLE, text)
        assert Settings().trusted_proxies == ((text,) if text else ())
