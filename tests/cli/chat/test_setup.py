"""Where the model comes from, and which key goes where."""

import pytest

from everlong.agent import DEFAULT_CONFIG
from everlong.cli.chat.setup import ChatOptions, choose, provider_of_key
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.wording import Words
from everlong.errors import InputError
from tests.cli.chat.talk import Person


@pytest.mark.parametrize(
    ("key", "provider"),
    [("sk-ant-x", "anthropic"), ("sk-or-v1", "openrouter"), ("gsk_1", "groq"), ("AIzaSy", "google"), ("sk-x", "")],
)
def test_keys_are_known_by_their_beginning(key: str, provider: str) -> None:
    assert provider_of_key(key) == provider


@pytest.mark.parametrize(
    ("options", "environment", "answers", "url"),
    [
        ({"local": True}, {"OPENAI_API_KEY": "k"}, [], None),
        ({"upstream": "http://gate:8333/v1"}, {"OPENAI_API_KEY": "k"}, [], "http://gate:8333/v1"),
        ({"upstream": "deepseek"}, {}, [], "https://api.deepseek.com/v1"),
        ({}, {"OPENAI_API_KEY": "k"}, [], "https://api.openai.com/v1"),
        ({}, {"EVERLONG_UPSTREAM": "http://gate/v1"}, [], "http://gate/v1"),
        ({}, {}, ["1"], None),
        ({}, {}, [""], None),
        ({}, {}, ["2", "sk-ant-secret"], "https://api.anthropic.com/v1"),
        ({}, {}, ["2", "http://gate/v1", "key"], "http://gate/v1"),
        ({}, {}, ["2", "ollama"], "http://127.0.0.1:11434/v1"),
        ({}, {}, ["2", "sk-unknown", "mistral"], "https://api.mistral.ai/v1"),
    ],
)
def test_where_the_model_comes_from(
    options: dict[str, object], environment: dict[str, str], answers: list[str], url: str | None
) -> None:
    person = Person(answers)
    chosen = ChatOptions(language=ENGLISH, **options)  # type: ignore[arg-type]
    endpoint = choose(chosen, DEFAULT_CONFIG, environment, person, Words(ENGLISH, "chat"))
    assert (endpoint and endpoint.url) == url
    assert not person.answers
    assert "secret" not in repr(endpoint)


@pytest.mark.parametrize(
    ("upstream", "key"),
    [
        ("openai", "openai-key"),
        ("https://api.openai.com/v1", "openai-key"),
        ("http://gate/v1", "gateway-key"),
        ("deepseek", ""),
        ("ollama", ""),
    ],
)
def test_a_key_goes_to_its_owner_only(upstream: str, key: str) -> None:
    environment = {"OPENAI_API_KEY": "openai-key", "EVERLONG_KEY": "gateway-key"}
    chosen = ChatOptions(language=ENGLISH, upstream=upstream)
    endpoint = choose(chosen, DEFAULT_CONFIG, environment, None, Words(ENGLISH, "chat"))
    assert endpoint is not None
    assert endpoint.key == key


def test_without_a_model_and_without_a_person_there_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="--local, --upstream URL, or set a key"):
        choose(ChatOptions(language=ENGLISH), DEFAULT_CONFIG, {}, None, Words(ENGLISH, "chat"))
