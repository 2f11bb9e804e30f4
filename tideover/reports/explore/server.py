"""The page's server: on the loopback only, for browsers on this machine.

A page of another site must neither read nor steer it: requests with another ``Host`` are refused (a name of
theirs may be made to mean this address), and so are those that another origin sends.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any

from tideover.reports.explore.requests import ASKED
from tideover.reports.explore.workers import Refused, Superseded, TooMuch, Workers

HOST = "127.0.0.1"
MOST_BODY = 10_000
"""Bytes of a request."""
_TYPES = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
_FILES = {"/": "explore.html", "/explore.js": "explore.js", "/explore.css": "explore.css"}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


class Server(ThreadingHTTPServer):
    """Serves the page, and answers it. Raises OSError if the port is in use."""

    daemon_threads = True

    def __init__(self, workers: Workers, port: int) -> None:
        self.workers = workers
        super().__init__((HOST, port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone away, as it does when it asks something newer, is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://{HOST}:{self.server_port}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which a browser of this machine may call it."""
        return tuple(f"{name}:{self.server_port}" for name in (HOST, "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "tideover"
    sys_version = ""
    timeout = 30
    wbufsize = -1  # head and body in one packet: a second one would wait for the first one's ack
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """The page, its module, its style."""
        if not self._is_ours():
            return
        path = self.path.partition("?")[0]
        if path not in _FILES:
            said = f"There is nothing at {path!r}. The page is at {self.server.address}"
            self._send(HTTPStatus.NOT_FOUND, said.encode(), "text/plain")
            return
        self._send(HTTPStatus.OK, asset(_FILES[path]), _TYPES[_FILES[path].rpartition(".")[2]])

    def do_POST(self) -> None:
        """An answer."""
        if not self._is_ours():
            return
        what = self.path.removeprefix("/")
        length = self.headers.get("Content-Length", "")
        if what not in ASKED:
            self._say(HTTPStatus.NOT_FOUND, f"{self.path!r}: there are {', '.join(ASKED)}")
        elif not length.isdigit() or int(length) > MOST_BODY:
            self._say(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {MOST_BODY} bytes")
        else:
            self._answer(what, self.rfile.read(int(length)))

    def _answer(self, what: str, body: bytes) -> None:
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise ValueError("no object")
        except ValueError:
            self._say(HTTPStatus.BAD_REQUEST, "a request is a JSON object")
            return
        who = str(request.pop("who", ""))[:100]
        try:
            found = self.server.workers.ask({**request, "what": what}, who)
        except Refused as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
        except TooMuch as error:
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except Superseded:
            self._say(HTTPStatus.CONFLICT, "a newer request has taken its place")
        else:
            self._send(HTTPStatus.OK, json.dumps(found).encode(), "application/json")

    def _is_ours(self) -> bool:
        """Whether the request comes from a page of ours; if not, it is refused."""
        hosts, origin = self.server.hosts, self.headers.get("Origin")
        named = self.headers.get_all("Host") or []
        if len(named) == 1 and named[0] in hosts and origin in (None, *(f"http://{host}" for host in hosts)):
            return True
        self.close_connection = True
        self._say(HTTPStatus.FORBIDDEN, f"this server answers {self.server.address} only")
        return False

    def _say(self, status: HTTPStatus, error: str) -> None:
        if status != HTTPStatus.BAD_REQUEST:
            self.close_connection = True  # what is left of the body is not read
        self._send(status, json.dumps({"error": error}).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, sort: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": f"{sort}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": _POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
        }.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal says where the page is, and no more."""


def asset(name: str) -> bytes:
    """A file of the page."""
    return files("tideover.reports.explore").joinpath("page", name).read_bytes()


def module() -> str:
    """The page's module without the call that builds the page of the server."""
    return asset("explore.js").decode().rpartition("\nconst here = ")[0] + "\n"
