"""Tideover simulates how a stream processor survives failure.

>>> import tideover
>>> result = tideover.run("wordcount", settings=["run.replications=1"])
>>> result.strategy
'source_replay'
"""

import pkgutil
import re
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Imported when first asked for: the parts of the engine are many, and pandas alone takes half a second. The
# stub, which is what type checkers see of this, says where each name is.
_STUB = pkgutil.get_data(__name__, "__init__.pyi") or b""
_WHERE = {
    name: where for where, name in re.findall(r"^from (\S+) import (\w+)", _STUB.decode(), re.MULTILINE)
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
