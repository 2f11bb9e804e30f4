"""Where Spark runs: how masters and Spark Connect servers are written, and whether somebody is there."""

from __future__ import annotations

import re
import socket
from typing import Literal

from tideover.scenarios.errors import Problem, ScenarioError

LOCAL = "local[*,4]"
"""Embedded Spark on all cores; it tries a task that lost its worker again, up to four times."""

CONNECT_S = 5.0
"""How long a cluster may take to answer."""

_HOST = r"(?:\[[\da-fA-F:.]+\]|[^\s/:,;\[\]]+)"
_MASTER = re.compile(
    r"local(\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\])?|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]|yarn"
    rf"|k8s://[^\s/].*|spark://{_HOST}:\d{{1,5}}(,{_HOST}:\d{{1,5}})*"
)
_REMOTE = re.compile(rf"sc://({_HOST})(?::(\d{{1,5}}))?(?:/(?:;[^\s;=]+=[^\s;=]+)*)?")
_ADDRESS = re.compile(r"(?:spark|k8s)://(?:(https?)://)?(.+)")
_PORTS = {"http": 80, "https": 443}
_CONNECT_PORT = 15002

MASTERS = "local, local[2], local[*,4], local-cluster[2,1,1024], spark://host:port, yarn or k8s://host:port"
REMOTES = "sc://host:port, with what the server needs behind it, as in sc://host:443/;use_ssl=true;token=…"


class SparkNotStarted(RuntimeError):
    """Spark did not start, or its cluster could not be reached. The message says why."""


def is_embedded(master: str) -> bool:
    """Whether this master runs the tasks inside the driver's own process.

    >>> is_embedded("local[2,4]"), is_embedded("local-cluster[2,1,1024]")
    (True, False)
    """
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def check_master(master: str, of: str) -> str:
    """The master as it was given; raises ScenarioError, which calls it ``of``, if Spark has none such."""
    if master.startswith("sc://"):
        said = "is a Spark Connect server, not a master; it goes with remote (--remote)"
    elif _MASTER.fullmatch(master) is None:
        said = f"is not one of Spark's masters; allowed: {MASTERS}"
    else:
        return master
    raise ScenarioError([Problem(of, None, repr(master), said)])


def check_remote(remote: str, of: str) -> str:
    """The server's address as it was given; raises ScenarioError, which calls it ``of``, if it is none."""
    if _REMOTE.fullmatch(remote) is None:
        said = f"is not the address of a Spark Connect server; allowed: {REMOTES}"
        raise ScenarioError([Problem(of, None, repr(shown(remote)), said)])
    return remote


def shown(remote: str) -> str:
    """A server's address without its parameters: a token is nobody else's business.

    >>> shown("sc://host:443/;token=secret")
    'sc://host:443'
    """
    return remote.split(";")[0].rstrip("/")


def reach(master: str) -> None:
    """See whether somebody listens at a cluster's address; raises SparkNotStarted if nobody does.

    Spark itself tries for a minute or more, and then ends with an error of its own making. Of ``yarn`` the
    address is in the cluster's files, so that is left to Spark.
    """
    match = _ADDRESS.fullmatch(master)
    if match is None:
        return
    scheme, rest = match.groups()
    default = str(_PORTS[scheme or "https"])
    _any_of([_split(one, default) for one in rest.split("/")[0].split(",")], "cluster", master)


def reach_server(remote: str) -> None:
    """See whether somebody listens at a Spark Connect server's address; SparkNotStarted if nobody does.

    Spark's client tries for minutes.
    """
    match = _REMOTE.fullmatch(remote)
    assert match is not None  # it was checked
    _any_of([(match[1], match[2] or str(_CONNECT_PORT))], "Connect server", shown(remote))


def _split(address: str, default: str) -> tuple[str, str]:
    host, colon, port = address.rpartition(":")
    return (host, port) if colon else (address, default)


def _any_of(addresses: list[tuple[str, str]], what: Literal["cluster", "Connect server"], name: str) -> None:
    reasons = []
    for host, port in addresses:
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            reasons.append(f"{host}:{port}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise SparkNotStarted(f"the Spark {what} {name} cannot be reached: {'; '.join(reasons)}")
