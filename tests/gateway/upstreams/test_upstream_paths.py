"""Which paths may be asked of an upstream: those that stay below its address, whoever reads them."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given, strategies as st
from yarl import URL

from everlong.errors import Refused
from everlong.gateway.surfaces import checked_path


@pytest.mark.parametrize(
    "path",
    [
        "/models",
        "/files/file-1/content",
        "/models/org%20name",
        "/files/",
        "/a.b/c..d",
        "/...",
        "/%E4%BD%A0",
        "/m:go",
        "/models/org%2Fname",
        "/models/claude-opus@20250514:go",
        "/x%40y",
        "/v1",
    ],
)
def test_plain_paths_are_passed_on(path: str) -> None:
    assert checked_path(path) == path
    assert checked_path(path.removeprefix("/")) == path


BAD_PATHS = [
    "",
    "/",
    "//",
    "//evil.example/x",
    "/a//b",
    "/..",
    "/../admin",
    "/a/./b",
    "/a/..",
    "/%2e%2e/admin",
    "/.%2E/admin",
    "/a%2f..%2fb",
    "/a%2F%2Fb",
    "/%2Fhost",
    "/a%2F.",
    "/a%5Cb",
    "/a\\b",
    "/%252e%252e/x",
    "/..;/x",
    "/%3b",
    "@evil",
    "/%40evil",
    "/a%2F@evil",
    "/a?b=c",
    "/a#b",
    "/a%3Fb",
    "/a%23b",
    "/a%00",
    "/a%0d%0aHost:%20x",
    "/a\r\nx",
    "/a b",
    "/a%",
    "/a%2",
    "/a%zz",
    "/你",
    "/a\x7f",
    "/" + "a" * 2_000,
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_tricky_paths_are_refused(path: str) -> None:
    with pytest.raises(Refused) as refused:
        checked_path(path)
    assert (refused.value.status, refused.value.kind) == (400, "bad_path")


PIECES = [
    "/",
    ".",
    "..",
    "%2e",
    "%2F",
    "%5c",
    "\\",
    "@",
    "a",
    "v1",
    ":",
    ";",
    "%41",
    "%",
    "25",
    "?",
    "#",
    "%E4",
    "~",
    " ",
    "\t",
]


@given(st.lists(st.sampled_from(PIECES) | st.characters(), max_size=8).map("".join))
def test_whatever_is_passed_on_stays_below_the_upstreams_address(path: str) -> None:
    try:
        accepted = checked_path(path)
    except Refused:
        return
    for base in ("https://api.example.com/v1", "http://127.0.0.1:8000/api/v1"):
        address = base + accepted
        for encoded in (True, False):
            seen = URL(address, encoded=encoded)
            assert seen.origin() == URL(base).origin()
            assert seen.path.startswith(URL(base).path + "/")
            assert seen.query_string == seen.fragment == ""
            assert ".." not in seen.path.split("/")
        parsed = urlsplit(address)
        assert parsed.netloc == urlsplit(base).netloc
        assert parsed.path == urlsplit(base).path + accepted
        assert not {"..", "."} & set(unquote(parsed.path).replace("\\", "/").split("/"))
