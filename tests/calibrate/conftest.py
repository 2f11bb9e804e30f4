"""What tests of the command share."""

from __future__ import annotations

from typing import Any

import pytest

from tideover.cli import main


@pytest.fixture
def tideover_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Call it with arguments; gives exit code, output and errors."""

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["tideover", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        shown = capsys.readouterr()
        return caught.value.code or 0, shown.out, shown.err

    return call
