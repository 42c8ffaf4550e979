"""The form of secrets: enough entropy, a checksum, nothing a shell or a URL would mangle."""

import re

from hypothesis import given
from hypothesis import strategies as st

from tollgate.stores.keys.secret import is_well_formed, new_secret, secret_hash

PREFIX = "sk-tg-"
entropies = st.binary(min_size=24, max_size=24)


@given(entropies)
def test_a_secret_is_letters_and_digits_after_its_prefix(entropy: bytes) -> None:
    secret = new_secret(PREFIX, lambda _: entropy)

    assert re.fullmatch(r"sk-tg-[0-9A-Za-z]{39}", secret)
    assert is_well_formed(secret, PREFIX)
    assert not is_well_formed(secret, "sk-other-")


@given(entropies, entropies)
def test_other_entropy_is_another_secret(one: bytes, other: bytes) -> None:
    secrets = {new_secret(PREFIX, lambda _: one), new_secret(PREFIX, lambda _: other)}

    assert len(secrets) == len({one, other})


@given(entropies, st.integers(0, 44), st.characters())
def test_a_single_wrong_character_is_noticed(entropy: bytes, at: int, wrong: str) -> None:
    secret = new_secret(PREFIX, lambda _: entropy)
    typo = secret[:at] + wrong + secret[at + 1 :]

    assert is_well_formed(typo, PREFIX) is (typo == secret)


@given(st.text(max_size=60))
def test_any_text_is_judged_without_an_error(text: str) -> None:
    assert not is_well_formed(text, PREFIX)
    assert not is_well_formed(PREFIX + text, PREFIX)


def test_what_is_stored_is_the_sha_256_of_the_whole_secret() -> None:
    assert secret_hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
