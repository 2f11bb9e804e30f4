"""The page of `tideover explore`: its processes and its server, the same page in Jupyter, and as a file.

Called by the command `explore` and by `tideover.explore`. What a run is told the page is in `answer`; what is
here must answer nobody but browsers of this machine.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import itertools
import json
import multiprocessing
import queue
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tideover.reports.explore.answer import ASKED, FIRST, Answers, Value, World, answer, pictured, shown
from tideover.scenarios.errors import ScenarioError

# Runs are done in processes of their own, which end when a run takes too long, or too much memory.

LONGEST_S = 10.0
"""A run that takes longer is ended."""
MOST_BYTES = 2 << 30
"""Memory that runs may take, beyond what their process has before it is asked."""
SIDES = 2
"""Strategies that are shown side by side, each asked of a process of its own."""


class TooMuch(Exception):
    """A run has taken too long, or too much memory."""


class Superseded(Exception):
    """Whoever asked has asked something else meanwhile."""


class Refused(Exception):
    """What was asked cannot be answered; the message names it, and says what is allowed."""


class Workers:
    """Two processes that answer. ``source``: the scenario that was given on the command line, if any;
    ``most_bytes``: of memory, for each beyond what it has before it is asked.
    """

    def __init__(
        self, source: str | None = None, *, longest_s: float = LONGEST_S, most_bytes: int = MOST_BYTES
    ) -> None:
        self.longest_s, self._most_bytes = longest_s, most_bytes
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "tideover.reports.explore.answer"])
        self._source = source
        self._idle: queue.Queue[_Worker] = queue.Queue()
        self._asked: dict[str, _Worker] = {}
        self._lock = threading.Lock()
        for _ in range(SIDES):
            self._start()

    def ask(self, request: Mapping[str, Any], who: str) -> dict[str, Any]:
        """The answer to a request. A newer one of the same ``who`` ends this one.

        Raises Refused, TooMuch, Superseded.
        """
        with self._lock:
            if (older := self._asked.pop(who, None)) is not None:
                older.superseded = True
                older.process.kill()
        worker = self._idle.get()
        with self._lock:
            self._asked[who] = worker
        found, failed = {}, None
        try:
            found = worker.answer(request, self.longest_s)
        except TimeoutError:
            failed = f"the run did not end within {self.longest_s:g} s: choose a lower rate, or a shorter run"
        except (EOFError, OSError):
            failed = "the run has ended its process: it may have taken too much memory"
        with self._lock:
            if self._asked.get(who) is worker:
                del self._asked[who]
        superseded = worker.superseded
        if superseded or failed:
            worker.process.kill()
            worker.process.join()
            self._start()
        else:
            self._idle.put(worker)
        if superseded:
            raise Superseded
        if failed or "too_much" in found:
            raise TooMuch(failed or found["too_much"])
        if "refused" in found:
            raise Refused(found["refused"])
        return found

    def close(self) -> None:
        while not self._idle.empty():
            self._idle.get().process.kill()

    def _start(self) -> None:
        self._idle.put(_Worker(self._context, self._source, self._most_bytes))


class _Worker:
    def __init__(self, context: Any, source: str | None, most_bytes: int) -> None:
        self.superseded = False
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, source, most_bytes), daemon=True)
        self.process.start()
        theirs.close()

    def answer(self, request: Mapping[str, Any], longest_s: float) -> dict[str, Any]:
        """Raises TimeoutError, and EOFError or OSError if the process is gone."""
        self._pipe.send(dict(request))
        if not self._pipe.poll(longest_s):
            raise TimeoutError
        found: dict[str, Any] = self._pipe.recv()
        return found


def _work(pipe: Connection, source: str | None, most_bytes: int) -> None:
    """Answer until nobody asks any more; memory is bound as far as the system lets one."""
    answers = Answers(source)
    answers.warm()
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        import psutil

        most = psutil.Process().memory_info().vms + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    with contextlib.suppress(EOFError, KeyboardInterrupt, BrokenPipeError):
        while True:
            pipe.send(answers(pipe.recv()))


# The page's server: on the loopback only, for browsers on this machine. A page of another site must neither
# read nor steer it: requests with another ``Host`` are refused (a name of theirs may be made to mean this
# address), and so are those that another origin sends.

HOST = "127.0.0.1"
MOST_BODY = 10_000
"""Bytes of a request."""
_FILES = {
    "/": ("explore.html", "text/html"),
    "/explore.js": ("explore.js", "text/javascript"),
    "/explore.css": ("explore.css", "text/css"),
}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
_POLICY += "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


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
        if not self._is_ours():
            return
        path = self.path.partition("?")[0]
        if path in _FILES:
            name, sort = _FILES[path]
            self._send(HTTPStatus.OK, asset(name), sort)
        else:
            said = f"There is nothing at {path!r}. The page is at {self.server.address}"
            self._send(HTTPStatus.NOT_FOUND, said.encode(), "text/plain")

    def do_POST(self) -> None:
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
        request = None
        with contextlib.suppress(ValueError):
            request = json.loads(body)
        if not isinstance(request, dict):
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
        about = {"Content-Type": f"{sort}; charset=utf-8", "Content-Length": str(len(body))}
        for name, value in (about | _HEADERS).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the terminal says where the page is, and no more."""


def asset(name: str) -> bytes:
    return files("tideover.reports.explore").joinpath("page", name).read_bytes()


def module() -> str:
    """The page's module without the call that builds the page of the server."""
    return asset("explore.js").decode().rpartition("\nconst here = ")[0] + "\n"


# The same page in a cell of Jupyter, by anywidget: answers come as messages of the kernel.


def explore(scenario: str | Path = FIRST) -> Any:
    """A page with sliders for what a scenario has, and what becomes of two strategies when one moves.

    ``scenario``: a built-in name, or a file. Raises ScenarioError for one that cannot be used, ImportError
    where anywidget is not installed: it comes with ``tideover[notebook]``.
    """
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise ImportError('explore needs anywidget: pip install "tideover[notebook]"') from None

    class Page(anywidget.AnyWidget):
        _esm = module()
        _css = asset("explore.css").decode()
        scenario = traitlets.Unicode().tag(sync=True)

    Answers(str(scenario)).check()
    workers = Workers(str(scenario))
    page = Page(scenario="")

    def asked(_: object, message: dict[str, Any], __: object) -> None:
        number = message.get("id")
        try:
            page.send({"id": number, "answer": workers.ask(message, "page")})
        except (Refused, TooMuch, Superseded) as error:
            page.send({"id": number, "error": str(error)})

    page.on_msg(asked)
    return page


# A page with its runs inside: it works without Tideover, from any place, as from a disk.

MOST_PAGE_BYTES = 5_000_000
"""Of a page."""
MARK = b'content="Tideover explore"'
"""What such a page has near its begin."""
POSITIONS = 5
"""Of each control in a grid that nobody has chosen."""
CHOSEN = ("moment", "message_timeout", "checkpoint_interval", "trigger_interval", "k")
"""Controls of such a grid, as far as there are any."""

Grid = Mapping[str, Sequence[Value]]


class TooLarge(Exception):
    """The page would have more than ``MOST_BYTES``; the message says what to drop."""


def default_grid(world: World, kinds: Sequence[str]) -> dict[str, list[Value]]:
    """A few positions of the controls that tell most: the moment, and what each strategy waits for."""
    found: dict[str, list[Value]] = {}
    for name in CHOSEN:
        control = world.controls.get(name)
        if control is not None and any(map(control.concerns, kinds)):
            # neighbours of the position at first, some to each side
            start = next((control.at[kind] for kind in (*kinds, "") if kind in control.at), None)
            known = list(control.values)
            middle = known.index(start) if start in known else 0
            step = max(1, len(known) // 12)
            low = max(0, middle - POSITIONS // 2 * step)
            found[name] = known[low : low + POSITIONS * step : step]
    return found


def page(
    world: World, kinds: Sequence[str], grid: Grid, report: Callable[[int, int], None] = lambda *_: None
) -> bytes:
    """The page, with a run for each strategy and each combination of positions of its controls; the one at
    first is always there.

    Raises TooLarge, and ValueError for a control, a position or a strategy that there is not.
    """
    held = {}
    for name, positions in grid.items():
        control = world.control(name)
        for value in positions:
            control.settings(next(iter(control.keys), ""), value)
        kept = {*positions, *control.at.values()}
        held[name] = replace(control, values=tuple(value for value in control.values if value in kept))
    usual: dict[str, dict[str, Value]] = {}
    asked: list[tuple[str, dict[str, Value]]] = []
    for kind in kinds:
        mine = [control for control in held.values() if control.concerns(kind)]
        usual[kind] = {control.name: control.at.get(kind, control.at.get("")) for control in mine}
        combinations = itertools.product(*(control.values for control in mine))
        asked += [(kind, dict(zip(usual[kind], values, strict=True))) for values in combinations]
    found = {}
    for done, (kind, moved) in enumerate(asked):
        report(done, len(asked))
        try:
            told = {"answer": answer(world, kind, moved), "picture": pictured(world, kind, moved, None)}
        except ScenarioError as error:
            raise ValueError(f"{kind} with {dict(moved)}: {error}") from None
        found[f"{kind} {_key(moved)}"] = told
    about = world.described()
    names = [one for one in about["strategies"] if one["kind"] in kinds]
    about |= {"strategies": names, "first": kinds[0], "second": kinds[-1], "scenarios": [shown(world.source)]}
    about["scenario"] = shown(world.source)  # of a path the name alone
    about["controls"] = [control.described() for control in held.values()]
    runs = json.dumps({"describe": about, "usual": usual, "runs": found}, separators=(",", ":")).encode()
    start = b'\nmount(document.getElementById("explore"), await inside(document.getElementById("runs")));\n'
    parts = {
        b'<link rel="stylesheet" href="explore.css">': b"<style>" + asset("explore.css") + b"</style>",
        b'<script type="module" src="explore.js" data-mount="explore"></script>': (
            b'<script type="application/octet-stream" id="runs">'
            + base64.b64encode(gzip.compress(runs, 9, mtime=0))
            + b'</script>\n<script type="module">'
            + (module().encode() + start + b"</script>")
        ),
    }
    made = asset("explore.html")
    for mark, inside in parts.items():
        made = made.replace(mark, inside)
    if len(made) > MOST_PAGE_BYTES:
        size, most = f"{len(made) / 1e6:.1f} MB", f"{MOST_PAGE_BYTES / 1e6:g}"
        said = f"{len(asked)} runs make {size}, and a page has at most {most}"
        raise TooLarge(f"{said}: give fewer positions, or fewer controls")
    return made


def _key(moved: Mapping[str, Value]) -> str:
    """As the page writes it: JavaScript has no 5.0."""
    plain = {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in moved.items()
    }
    return json.dumps(sorted([name, value] for name, value in plain.items()), separators=(",", ":"))
