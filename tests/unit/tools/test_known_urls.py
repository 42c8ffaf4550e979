"""The addresses that a request may fetch."""

import time

import pytest

from tollgate.core.content import Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.tools.known_urls import KnownUrls


def known(*messages: Message) -> KnownUrls:
    return KnownUrls(GenerationRequest(model="m", messages=messages))


def said(text: str) -> KnownUrls:
    return known(UserMessage(content=(Text(text=text),)))


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("see https://a.example/b.", "https://a.example/b"),
        ("see https://a.example/b", "http://a.example/b/"),
        ("(https://a.example/b)", "https://a.example/b"),
        ("[b](https://a.example/b)", "https://a.example/b"),
        ("[b](https://a.example/b)[c](https://a.example/c)", "https://a.example/b"),
        ("https://a.example/b_(c)", "https://a.example/b_(c)"),
        ("<https://A.example/b?c=d&e=f#g>", "https://a.example/b?c=d&e=f"),
        ("https://a.example/?x=1&amp;y=2", "https://a.example/?x=1&y=2"),
        ("https://a.example:8443/b", "https://a.example:8443/b"),
        ("read example.com/prices, please", "https://example.com/prices"),
        ("(see https://a.example/b_(c)).", "https://a.example/b_(c)"),
        ("(https://a.example/b_((c)).d).).", "https://a.example/b_((c)).d"),
        ("read www.example.com", "https://www.example.com/"),
    ],
)
def test_an_address_of_the_caller_is_known_however_a_model_repeats_it(text: str, url: str) -> None:
    assert said(text).find(url) is not None


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/b?q=secret",
        "https://a.example/bb",
        "https://a.example/",
        "https://secret.a.example/b",
        "https://a.example:8443/b",
        "https://user@a.example/b",
        "https://a.example/b/secret",
        "https://a.example/B",
        "ftp://a.example/b",
        "file:///b",
        "a.example/b",
        "",
    ],
)
def test_no_other_address_is_known(url: str) -> None:
    assert said("see https://a.example/b").find(url) is None


@pytest.mark.parametrize(
    "url", ["https://a.example/b////", "http://a.example:443/b", "HTTPS://A.example./b#secret"]
)
def test_an_address_is_fetched_as_the_caller_wrote_it(url: str) -> None:
    assert said("see https://a.example/b").find(url) == "https://a.example/b"


def test_the_words_of_an_assistant_prove_nothing() -> None:
    url = "https://attacker.example/?q=secret"
    call = ToolCall(id="c", name="f", arguments=f'{{"u": "{url}"}}')
    assert known(AssistantMessage(content=(Text(text=url), call))).find(url) is None
    assert known(ToolMessage(call_id="c", content=(Text(text=url),))).find(url) is not None
    assert known(SystemMessage(content=(Text(text=url),))).find(url) is not None


def test_a_bare_domain_of_a_result_is_not_known() -> None:
    urls = said("hello")
    urls.note_text("read attacker.example/page and https://a.example/b")
    assert urls.find("https://attacker.example/page") is None
    assert urls.find("https://a.example/b") is not None


def test_a_file_in_the_text_is_no_reason_to_read_slowly() -> None:
    text = "a." * 400_000 + " https://" * 100_000 + "(" * 200_000 + ")" * 200_000
    began_s = time.process_time()
    assert said(text).find("https://a.example/") is None
    assert time.process_time() - began_s < 5


@pytest.mark.parametrize(
    "address",
    [
        "https://a.example/{}" + ")" * 960,
        pytest.param("https://a.example/b#{}", marks=pytest.mark.nightly),
    ],
)
def test_a_text_that_is_all_addresses_is_no_reason_to_read_slowly(address: str) -> None:
    text = " ".join(address.format(n) for n in range(5_000_000 // len(address)))
    began_s = time.process_time()
    assert said(text).find("https://a.example/") is None
    assert time.process_time() - began_s < 1.5
