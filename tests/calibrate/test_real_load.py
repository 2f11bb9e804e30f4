"""How many cores others keep busy: what all cores spent, less what our processes did."""

from tideover.calibrate.real import supervisor


def test_law_others_are_what_is_left(monkeypatch):
    """In 2 s the cores spend 3 s; one of ours spends 1.0, and a new one 0.4: others 1.6 s, so 0.8 cores."""
    now, busy, ours = [0.0], [100.0], [{}]
    monkeypatch.setattr(supervisor.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(supervisor, "_busy", lambda: busy[0])
    monkeypatch.setattr(supervisor, "_spent", lambda roots: dict(ours[0]))
    others = supervisor.OtherWork()
    now[0], ours[0] = 1.0, {(7, 0.0): 5.0}
    assert others.look([7]) is None  # what ours had spent before is not known
    now[0], busy[0], ours[0] = 3.0, 103.0, {(7, 0.0): 6.0, (8, 2.0): 0.4}
    assert round(others.look([7]), 9) == 0.8
    now[0] = 3.9
    assert others.look([7]) is None  # too early
    now[0], ours[0] = 4.0, {(8, 2.0): 0.4}
    assert others.look([7]) == 0.0  # 7 has ended
