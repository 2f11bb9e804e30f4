"""The server of `tideover explore`, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tideover.reports.explore.server import Server, Workers


@contextmanager
def serving(workers: Workers) -> Iterator[Server]:
    made = Server(workers, 0)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()
