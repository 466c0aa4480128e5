"""Surfaces and addresses: what is read from a path is what the upstream is asked, wherever its paths begin."""

from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from everlong.errors import Refused
from everlong.gateway.surfaces import NAMES as PLACES, SURFACES, Address, Surface, checked_path
from everlong.gateway.upstreams.routing import Upstream
from everlong.llm import Endpoint
from everlong.wire import OPENAI_CHAT

CLOUD = Surface(format=OPENAI_CHAT, base="/cloud", path="/places/{place}/models/{model}:ask", stream=False)
NAMES = st.text(min_size=1, max_size=30)


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.base + surface.path)
def test_every_surface_finds_its_own_path(surface: Surface) -> None:
    path = surface.path.replace("{", "").replace("}", "")
    for start in (surface.base, "/v1" + surface.base):
        address = surface.address(start + path)
        assert address is not None
        assert address.path == path
    assert surface.address("/other" + surface.base + path) is None


@given(model=NAMES, other=NAMES)
def test_a_model_in_a_path_is_read_and_written(model: str, other: str) -> None:
    path = f"/places/here/models/{quote(model, safe=':@')}:ask"
    address = CLOUD.address("/cloud" + path)
    assert address is not None
    assert (address.model, address.path) == (model, path)
    assert address.with_model(other).model == other
    assert address.with_model(other).with_model(model) == address


#: What names of models are made of: versions, regions, makers, ARNs, and letters of any language.
MODELS = st.lists(
    st.sampled_from(["claude", "gpt-4o", "@20251101", ":0", "us.", "anthropic.", "arn:aws:", "/", "-v1", "模型", " "]),
    min_size=1,
    max_size=6,
).map("".join)


def path_of(surface: Surface, name: str) -> str:
    """The path with one value in all its places."""
    return surface.base + PLACES.sub(lambda _: quote(name, safe=":@"), surface.path)


@given(surface=st.sampled_from(SURFACES), name=MODELS)
def test_no_surface_hides_another_and_what_stands_in_a_path_stays(surface: Surface, name: str) -> None:
    """The first that fits answers: a later one of another meaning would never be reached."""
    path = path_of(surface, name)
    address = next(found for each in SURFACES if (found := each.address(path)) is not None)
    assert address.surface is surface
    assert surface.base + address.path == path
    assert address.path == address.any_models.replace("{model}", quote(name, safe=":@"))
    assert not surface.names_model or address.model == name


@pytest.mark.parametrize("name", ["../..", "a/../b", "a\\b", "a?b", "a#b", "a%b", "a//b"])
def test_no_name_leads_out_of_an_address(name: str) -> None:
    for surface in (each for each in SURFACES if PLACES.search(each.path)):
        with pytest.raises(Refused):
            checked_path(path_of(surface, name))


def test_an_address_without_a_model_leaves_it_to_the_body() -> None:
    assert Address(surface=SURFACES[0]).model == ""


@pytest.mark.parametrize(
    ("url", "base", "address"),
    [
        ("http://host/v1", "/v1", "http://host/v1"),
        ("http://host/v1", "/v1beta", "http://host/v1beta"),
        ("http://host/v1", "", "http://host"),
        ("http://host/v1", "/api", "http://host/api"),
        ("http://host/v1beta", "/v1beta", "http://host/v1beta"),
        ("http://host/v1beta", "/v1", "http://host/v1"),
        ("http://host/api/paas/v4", "/v1", "http://host/api/paas/v4"),
        ("http://host/openai/v1", "/v1", "http://host/openai/v1"),
        ("http://host/openai/v1", "/openai", "http://host/openai"),
        ("http://host/proxy", "/v1", "http://host/proxy"),
        ("http://host/proxy", "/v1beta", "http://host/proxy/v1beta"),
    ],
)
def test_an_upstream_has_an_address_for_every_base(url: str, base: str, address: str) -> None:
    assert Upstream(name="one", endpoint=Endpoint(url=url)).address(base) == address
