"""The package's build: compiles the data plane, with ziglang from PyPI where there is no C compiler."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLANE = Path(__file__).parent / "tideover" / "sim" / "plane"


class DataPlane(BuildHookInterface):
    """Puts the library into the wheel, or, for an editable installation, beside its sources."""

    def dependencies(self) -> list[str]:
        """What the build needs beside what pyproject.toml says."""
        compiler = runpy.run_path(str(PLANE / "build.py"))["find_compiler"]()
        return [] if compiler else ["ziglang>=0.17,<1"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the library, and say that it belongs to the wheel."""
        from packaging.tags import platform_tags

        building = runpy.run_path(str(PLANE / "build.py"))
        try:
            library = building["build"]()
        except building["NoDataPlane"] as error:
            self.app.abort(str(error))
        building["declare"]((PLANE / building["HEADER"]).read_bytes(), PLANE)
        for made in (library, PLANE / building["KEPT"]):
            build_data["artifacts"].append(f"/{made.relative_to(self.root).as_posix()}")
        build_data["pure_python"] = False
        # Any Python 3 opens it, on this kind of machine; which C libraries it goes with is not looked into.
        here = next(tag for tag in platform_tags() if "manylinux" not in tag and "musllinux" not in tag)
        build_data["tag"] = f"py3-none-{here}"
