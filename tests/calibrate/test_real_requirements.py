"""What a machine lacks for a calibration is said in sentences."""

import platform
from types import SimpleNamespace

import psutil
import pytest

from tideover.calibrate.real import campaign, supervisor
from tideover.calibrate.real.plan import tiny


def test_a_machine_that_has_all_of_it(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2**33, total=2**34))
    assert supervisor.requirements() == []


@pytest.mark.parametrize("lacks", ["memory", "java", "system"])
def test_what_is_missing_is_named_and_nothing_is_started(lacks, monkeypatch, tmp_path):
    available = 2**30 if lacks == "memory" else 2**33
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=available, total=2**34))
    if lacks == "java":
        monkeypatch.setattr(supervisor, "find_java", lambda: None)
    if lacks == "system":
        monkeypatch.setattr(platform, "system", lambda: "Windows")
    (problem,) = supervisor.requirements()
    says = {
        "memory": "3 GiB of free memory, and there are 1.0 GiB",
        "java": "Java 17 or newer",
        "system": "Windows",
    }
    assert says[lacks] in problem
    with pytest.raises(campaign.NotPossible, match=says[lacks].split(",")[0]):
        campaign.run(tiny(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_two_calibrations_do_not_share_a_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(campaign, "requirements", list)
    with campaign.alone(tmp_path), pytest.raises(campaign.NotPossible, match="another calibration"):
        campaign.run(tiny(), tmp_path)
