"""The compiled data plane as a file: made of the sources beside it by any compiler, opened from anywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from tests import sanitized
from tideover.sim.plane import build as building
from tideover.sim.plane.build import (
    HERE,
    LIBRARY,
    NoDataPlane,
    build,
    digest,
    digest_of,
    find_compiler,
    readable,
    version,
)
from tideover.sim.plane.library import ffi, lib, made_by

COMPILER = find_compiler()
compiled = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
ASK = "from tideover.sim.plane.library import made_by; print(*made_by(), sep='\\n')"
ADDING = """\
__attribute__((visibility("default"))) double adding(const double *of, int count) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += of[i];
    }
    return sum;
}
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A copy of as much of the package as opens the library, as it is in a checkout."""
    copy = tmp_path / "copy"
    for name in ("tideover/__init__.py", "tideover/sim/__init__.py"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE.parents[2] / name, copy / name)
    shutil.copytree(
        HERE, copy / "tideover/sim/plane", ignore=shutil.ignore_patterns("__pycache__", ".making-*")
    )
    return copy


@pytest.fixture
def small(elsewhere: Path) -> Path:
    """The same with one source, which takes a moment to compile: names are looked up when they are called."""
    for source in (elsewhere / "tideover/sim/plane").glob("*.c"):
        if source.name != "accounts.c":
            source.unlink()
    return elsewhere


def asked(root: Path, code: str = ASK, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process that imports from ``root`` and asks the library something: who made it, of what."""
    left = {name: value for name, value in os.environ.items() if name not in ("TIDEOVER_PLANE", "CC")}
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        env=left | {"PYTHONPATH": str(root)} | variables,
        cwd=root.parent,
        capture_output=True,
        text=True,
    )


def change(root: Path) -> str:
    """Change a source; returns the digest that the library should have."""
    plane = root / "tideover/sim/plane"
    with (plane / "accounts.c").open("a") as source:
        source.write("/* changed */\n")
    return digest(plane)


def test_it_is_made_of_the_sources_beside_it(elsewhere: Path) -> None:
    compiler, sources = asked(elsewhere).stdout.splitlines()
    assert compiler
    assert sources == digest() == digest_of(elsewhere / "tideover/sim/plane" / LIBRARY)


@compiled
def test_a_library_that_is_older_than_its_sources_is_made_anew(small: Path) -> None:
    """Law: what runs is what the sources say, also where somebody has changed them and runs a test."""
    before = digest(small / "tideover/sim/plane")
    assert asked(small).stdout.splitlines()[1] == before
    new = change(small)
    assert new not in (before, digest())
    assert asked(small).stdout.splitlines()[1] == new


@compiled
def test_declarations_that_are_older_than_the_header_are_made_anew(small: Path) -> None:
    header = small / "tideover/sim/plane/plane.h"
    header.write_text(header.read_text().replace("#pragma", "#define NEWER 17\n#pragma", 1))
    told = asked(small, "from tideover.sim.plane.library import lib; print(lib.NEWER)")
    assert told.stdout == "17\n", told.stderr


def test_an_older_one_without_a_compiler_is_refused(elsewhere: Path) -> None:
    """One sentence says what is missing, the next what to do."""
    change(elsewhere)
    said = asked(elsewhere, CC="/nowhere/cc").stderr.splitlines()[-1]
    says = "has to be made anew, and the C compiler that CC names (/nowhere/cc) does not work. Install one"
    assert says in said


def test_without_any_compiler_it_is_said_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    says = r"is missing, and no C compiler works here\. .*pip install ziglang"
    with pytest.raises(NoDataPlane, match=says):
        build(tmp_path)
    assert list(tmp_path.iterdir()) == []


@compiled
def test_what_a_compiler_says_comes_last(tmp_path: Path) -> None:
    (tmp_path / "wrong.c").write_text("int wrong(void) { return missing; }\n")
    with pytest.raises(NoDataPlane, match=r"does not compile(.|\n)*wrong\.c:1(.|\n)*missing"):
        build(tmp_path / "out", folder=tmp_path)
    assert list((tmp_path / "out").iterdir()) == []


@compiled
def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    """Law: neither folder nor time is in the library. The package's own is one, if this compiler made it."""
    shutil.copytree(HERE, tmp_path / "sources", ignore=shutil.ignore_patterns("__pycache__", ".making-*"))
    own = HERE / LIBRARY
    same = COMPILER is not None and made_by() == (version(COMPILER), digest())
    here = own if same and digest_of(own) == digest() else build(tmp_path / "here", COMPILER)
    there = build(tmp_path / "there", COMPILER, folder=tmp_path / "sources")
    assert here.read_bytes() == there.read_bytes()
    assert digest(tmp_path / "sources") == digest()


@compiled
def test_several_processes_make_it_at_the_same_time(small: Path, tmp_path: Path) -> None:
    plane, out = small / "tideover/sim/plane", tmp_path / "out"
    command = [sys.executable, plane / "build.py", "--again", "--out", out]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert [path.name for path in out.iterdir()] == [LIBRARY]
    assert digest_of(out / LIBRARY) == digest(plane)


def test_the_library_has_all_that_the_header_declares() -> None:
    """A name that is only declared is an error when it is first asked for: here, all are."""
    names = dir(lib)
    assert {"plane_made_by", "plane_sources"} <= set(names)
    assert [name for name in names if not hasattr(lib, name)] == []


def is_known(described: Any) -> bool:
    """Whether Python sees the fields of a struct. To ask for those of another one may end the process."""
    try:
        return bool(ffi.sizeof(described))
    except ffi.error:
        return False


@compiled
def test_python_and_c_see_the_same_structs(tmp_path: Path) -> None:
    """Law: sizes, places of fields and constants are what the compiler makes of the same header."""
    claims = [f"{name} == {getattr(lib, name)}" for name in dir(lib) if isinstance(getattr(lib, name), int)]
    typedefs, structs, _ = ffi.list_types()
    for name in [*(f"struct {name}" for name in structs), *typedefs]:
        described = ffi.typeof(name)
        if described.kind == "struct" and is_known(described):
            claims.append(f"sizeof({name}) == {ffi.sizeof(described)}")
            claims += [f"offsetof({name}, {field}) == {about.offset}" for field, about in described.fields]
    lines = [f'_Static_assert({claim}, "{claim}");' for claim in claims]
    shutil.copy(HERE / "plane.h", tmp_path)
    (tmp_path / "claims.c").write_text("\n".join(['#include <stddef.h>\n#include "plane.h"', *lines, ""]))
    build(tmp_path / "out", folder=tmp_path)


def test_a_header_is_read_without_what_only_c_reads() -> None:
    for_both = "#define MANY 12\n#define LEAST -1\nint f(void);\n"
    header = f"#ifndef H\n#define H\n#include <stdint.h>\n#pragma once\n{for_both}#endif\n"
    assert readable(header.encode()) == for_both


def test_it_is_opened_from_a_zip(elsewhere: Path, tmp_path: Path) -> None:
    """As Spark's workers get it. Nothing is left in the folder for temporary files."""
    asked(elsewhere)
    packed = shutil.make_archive(str(tmp_path / "packed"), "zip", elsewhere)
    (tmp_path / "temporary").mkdir()
    told = asked(Path(packed), TMPDIR=str(tmp_path / "temporary"))
    assert told.stdout.splitlines()[1:] == [digest()], told.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


def test_another_one_is_opened_as_it_is(elsewhere: Path, tmp_path: Path) -> None:
    """TIDEOVER_PLANE names it, whatever its sources were; one that is none is refused."""
    asked(elsewhere)
    other = tmp_path / "other.so"
    (elsewhere / "tideover/sim/plane" / LIBRARY).rename(other)
    change(elsewhere)
    assert asked(elsewhere, TIDEOVER_PLANE=str(other)).stdout.splitlines()[1] == digest()
    other.write_text("no library")
    assert "TIDEOVER_PLANE names it." in asked(elsewhere, TIDEOVER_PLANE=str(other)).stderr.splitlines()[-1]


@compiled
@pytest.mark.long
@pytest.mark.skipif(util.find_spec("ziglang") is None, reason="needs ziglang")
def test_another_compiler_makes_the_same_results(tmp_path: Path) -> None:
    """Law: the same numbers to the last bit, since none may fuse a product with a sum, or reorder."""
    many = 100_000
    found = set()
    for number, compiler in enumerate([COMPILER, [*building.ZIG, "cc"]]):
        opened = ffi.dlopen(str(build(tmp_path / str(number), compiler)))
        bits = ffi.new("uint64_t[]", list(range(many)))
        numbers = ffi.new("double[]", many)
        opened.mix64_array(bits, many, bits)
        opened.uniform01_array(bits, many, numbers)
        opened.natural_log_array(numbers, many, numbers)
        found.add(bytes(ffi.buffer(numbers)))
    assert len(found) == 1


@pytest.mark.long
@pytest.mark.skipif(util.find_spec("ziglang") is None, reason="needs ziglang")
@pytest.mark.parametrize("kind", ["aarch64-linux-gnu", "aarch64-macos", "x86_64-linux-gnu", "x86_64-macos"])
def test_it_can_be_made_for_other_kinds_of_machines(kind: str, tmp_path: Path) -> None:
    """Where there is no compiler, zig's is taken: it has to compile these sources there."""
    made = build(tmp_path, [*building.ZIG, "cc", "-target", kind])
    assert digest_of(made) == digest()


@pytest.mark.long
def test_a_checked_library_finds_faults(tmp_path: Path) -> None:
    """What sanitizers are for: a process that reads behind an array ends and says so; another does not."""
    checked = sanitized.environment(tmp_path / "whole")
    assert subprocess.run([sys.executable, "-c", ASK], env=checked).returncode == 0
    (tmp_path / "adding.c").write_text(ADDING)
    checked = sanitized.environment(tmp_path / "out", folder=tmp_path)
    behind = (
        "import os; from cffi import FFI; types = FFI();"
        "types.cdef('double adding(const double *of, int count);');"
        "types.dlopen(os.environ['TIDEOVER_PLANE']).adding(types.new('double[]', [1.0]), 2)"
    )
    done = subprocess.run([sys.executable, "-c", behind], env=checked, capture_output=True, text=True)
    assert done.returncode
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr
