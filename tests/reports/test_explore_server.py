"""The server of `tideover explore`: for browsers of this machine, and whatever they ask ends."""

from __future__ import annotations

import http.client
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.reports.serving import serving
from tideover.reports.explore.server import MOST_BODY, SIDES, Server, Superseded, TooMuch, Workers

pytestmark = pytest.mark.xdist_group("explore")
SMALL = {"scenario": "wordcount", "strategy": "rsm", "moved": {}}
ASKED = {"what": "answer", **SMALL}
LONG = {"what": "answer", "scenario": "cluster", "strategy": "micro_batch", "moved": {"rate": 1000.0}}
"""Many seconds, and many megabytes."""


def warm(workers: Workers) -> Workers:
    """Both processes have answered once: what follows does not wait for their start."""
    longest, workers.longest_s = workers.longest_s, 60
    for _ in range(SIDES):
        workers.ask(ASKED, "warm")
    workers.longest_s = longest
    return workers


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with closing(warm(Workers())) as workers, serving(workers) as made:
        yield made


def ask(server: Server, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection(*server.server_address[:2], timeout=60)
    text = body if isinstance(body, str | None) else json.dumps(body)
    connection.request(method, path, text, headers)
    response = connection.getresponse()
    found = response.read()
    connection.close()
    sort = response.headers["Content-Type"]
    return response.status, response.headers, json.loads(found) if "json" in sort else found.decode()


def test_the_page_and_its_parts(server: Server) -> None:
    sorts = {"/": "text/html", "/explore.js": "text/javascript", "/explore.css": "text/css"}
    for path, sort in sorts.items():
        status, headers, text = ask(server, "GET", path)
        assert (status, headers["Content-Type"]) == (200, f"{sort}; charset=utf-8")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert text
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:80"},
        {"Host": "127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/answer")])
def test_other_names_and_other_pages_are_refused(
    server: Server, headers: Any, method: str, path: str
) -> None:
    status, _, found = ask(server, method, path, SMALL, **headers)
    assert status == 403
    assert "answers http://127.0.0.1:" in found["error"]


def test_its_own_origin_is_answered(server: Server) -> None:
    host = f"localhost:{server.server_port}"
    status, _, found = ask(server, "POST", "/answer", SMALL, Host=host, Origin=f"http://{host}")
    assert status == 200
    assert found["name"] == "R+SM"


@pytest.mark.parametrize(
    "path", ["/x", "/../pyproject.toml", "/page/explore.js", "//etc/passwd", "/%2e%2e/x"]
)
def test_a_wrong_address_says_where_the_page_is(server: Server, path: str) -> None:
    status, _, text = ask(server, "GET", path)
    assert status == 404
    assert server.address in text


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/answer", " " * (MOST_BODY + 1), 413, "at most"),
        ("/answer", "no json", 400, "a JSON object"),
        ("/answer", "[1]", 400, "a JSON object"),
        ("/answer", {"scenario": "wordcount"}, 400, "strategy: None"),
        ("/answer", SMALL | {"what": "describe", "strategy": "x"}, 400, "'x' does not go"),
        ("/remove", {}, 404, "describe, answer, picture"),
    ],
)
def test_what_is_no_request_is_refused(server: Server, path: str, body: Any, status: int, words: str) -> None:
    found = ask(server, "POST", path, body)
    assert found[0] == status
    assert words in found[2]["error"]
    assert ask(server, "POST", "/answer", SMALL)[0] == 200  # and it goes on


def test_other_methods_are_not_known(server: Server) -> None:
    assert ask(server, "PUT", "/answer", SMALL)[0] == 501


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({"longest_s": 0.7}, r"did not end within 0\.7 s"),
        pytest.param(
            {"longest_s": 120, "most_bytes": 48 << 20},
            "memory",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound it so"),
        ),
    ],
)
def test_a_run_that_takes_too_much_is_ended_and_the_next_is_answered(bounds: Any, says: str) -> None:
    with closing(warm(Workers(**bounds))) as workers:
        with pytest.raises(TooMuch, match=says):
            workers.ask(LONG, "a")
        workers.longest_s = 60
        assert workers.ask(ASKED, "a")["name"] == "R+SM"


@pytest.fixture
def patient() -> Iterator[Workers]:
    with closing(warm(Workers(longest_s=120))) as workers:
        yield workers


def test_a_newer_request_takes_the_place_of_an_older_one(patient: Workers) -> None:
    ended: list[type[Exception]] = []

    def older() -> None:
        try:
            patient.ask(LONG, "a")
        except Exception as error:
            ended.append(type(error))

    thread = threading.Thread(target=older)
    thread.start()
    while "a" not in patient._asked:
        pass
    assert patient.ask(ASKED, "a")["name"] == "R+SM"
    thread.join(60)
    assert ended == [Superseded]
    assert [patient.ask(ASKED, who)["name"] for who in "aabb"] == ["R+SM"] * 4
