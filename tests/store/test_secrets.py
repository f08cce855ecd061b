from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crystal.store.home import Home, HomeFileError
from crystal.store.providers import load_providers
from crystal.store.secrets import Redactor, StreamRedactor, collect_secrets

SECRETS = (("OPENAI_API_KEY", "sk-abcdefgh"), ("acme.apiKey", "sk-abcdefgh-longer"))


def test_keys_of_every_provider_and_secret_headers_are_gathered(home: Home) -> None:
    home.write_private(home.credentials_file, json.dumps({"gemini": "stored-key", "gone": "old-stored-key"}).encode())
    home.ensure()
    (home.root / "key").write_text("key-from-file\n")
    (home.root / "key").chmod(0o600)
    gate = {"protocol": "openai", "baseUri": "https://a.example", "models": {}}
    home.write_private(
        home.providers_file,
        json.dumps(
            {
                "one": {**gate, "apiKey": "literal-key", "apiKeyEnvironment": "SPECIAL"},
                "two": [
                    {**gate, "apiKey": "{file:key}", "headers": {"X-Team": "not-a-secret-name"}},
                    {**gate, "headers": {"Authorization": "Bearer {env:TOKEN}", "Set-COOKIE": "session=1"}},
                ],
                "three": {**gate, "apiKey": "{env:UNSET}", "headers": {"x-api-key": "short"}},
            }
        ).encode(),
    )
    environ = {
        "CRYSTAL_API_KEY": "shared-key",
        "OPENAI_API_KEY": "openai-key",
        "SPECIAL": "special-key",
        "TOKEN": "token-of-two",
        "UNRELATED_API_KEY": "unrelated-key",
        "ANTHROPIC_API_KEY": "seven77",
    }
    assert collect_secrets(load_providers(home)[0], environ, home) == (
        ("CRYSTAL_API_KEY", "shared-key"),
        ("OPENAI_API_KEY", "openai-key"),
        ("SPECIAL", "special-key"),
        ("one.apiKey", "literal-key"),
        ("two.apiKey", "key-from-file"),
        ("two.Authorization", "Bearer token-of-two"),
        ("two.Authorization", "token-of-two"),
        ("two.Set-COOKIE", "session=1"),
        ("gemini.key", "stored-key"),
        ("gone.key", "old-stored-key"),
    )


def test_broken_credentials_are_an_error_here_too(home: Home) -> None:
    home.write_private(home.credentials_file, b"{")
    with pytest.raises(HomeFileError):
        collect_secrets(load_providers(home)[0], {}, home)


def test_every_occurrence_is_replaced_and_the_longest_wins() -> None:
    redactor = Redactor(SECRETS)
    text = "a sk-abcdefgh b sk-abcdefgh-longer sk-abcdefghsk-abcdefgh"
    assert redactor.apply(text) == (
        "a [redacted:OPENAI_API_KEY] b [redacted:acme.apiKey] [redacted:OPENAI_API_KEY][redacted:OPENAI_API_KEY]"
    )
    assert redactor.marks == ("[redacted:acme.apiKey]", "[redacted:OPENAI_API_KEY]")


def test_a_text_without_secrets_comes_back_as_the_same_object() -> None:
    text = "nothing to see here, not even sk-abcdefg"
    assert Redactor(SECRETS).apply(text) is text
    assert Redactor(()).apply(text) is text


def test_signs_with_a_meaning_in_patterns_are_plain() -> None:
    assert Redactor((("X", "a.c*(+[$\\1"),)).apply("a.c*(+[$\\1 abc") == "[redacted:X] abc"


def test_a_stream_gives_out_at_once_what_cannot_be_part_of_a_secret() -> None:
    stream = StreamRedactor(Redactor(SECRETS))
    assert stream.feed("hello wor") == "hello wor"
    assert stream.feed("ld sk-ab") == "ld "
    assert stream.feed("x") == "sk-abx"
    assert stream.feed("sk-abcdefgh") == ""
    assert stream.feed("-l ") == "[redacted:OPENAI_API_KEY]-l "
    assert stream.feed("s") == ""
    assert stream.finish() == "s"
    assert stream.finish() == ""


def test_a_stream_that_ends_in_a_secret_hides_it() -> None:
    stream = StreamRedactor(Redactor(SECRETS))
    assert stream.feed("sk-abcdefgh") + stream.finish() == "[redacted:OPENAI_API_KEY]"


_few_letters = st.text(alphabet="ab", min_size=1, max_size=6)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_stream_cut_anywhere_gives_what_the_whole_text_gives(data: st.DataObject) -> None:
    values = data.draw(st.lists(_few_letters, unique=True, max_size=4))
    pieces = data.draw(st.lists(st.text(alphabet="abc", max_size=9), max_size=12))
    redactor = Redactor([(str(position), value) for position, value in enumerate(values)])
    stream = StreamRedactor(redactor)
    shown = [stream.feed(piece) for piece in pieces]
    assert "".join([*shown, stream.finish()]) == redactor.apply("".join(pieces))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_no_prefix_of_the_stream_shows_more_than_the_whole_will(data: st.DataObject) -> None:
    secret = data.draw(st.text(alphabet="ab", min_size=3, max_size=6))
    text = data.draw(st.text(alphabet="abc", max_size=15)) + secret + data.draw(st.text(alphabet="abc", max_size=9))
    redactor = Redactor([("X", secret)])
    stream = StreamRedactor(redactor)
    whole = redactor.apply(text)
    shown = ""
    for sign in text:
        shown += stream.feed(sign)
        assert whole.startswith(shown)
