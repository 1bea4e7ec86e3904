"""Builds tatcell._core with the library in it. SPDX-License-Identifier: MIT OR Apache-2.0

Where the library comes from, the first that is there:

1. TATCELL_LIB, a folder with libtatcell.a and include/: `make install PREFIX=...` makes one (lib/ and include/).
2. vendor/ of the source distribution: an archive that was built when that was made. A C compiler is enough.
3. vendor/crate, the sources of the library, on other platforms than that of the archive. That needs cargo.
4. The checkout around this folder. That needs cargo, binutils and make.
"""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig

from setuptools import Extension, setup

HERE = pathlib.Path(__file__).resolve().parent
VENDOR = HERE / "vendor"
CHECKOUT = HERE.parent.parent


def library() -> tuple[pathlib.Path, pathlib.Path]:
    """Returns the archive and the folder of its headers."""
    given = os.environ.get("TATCELL_LIB")
    if given:
        for archive in pathlib.Path(given) / "libtatcell.a", pathlib.Path(given) / "lib" / "libtatcell.a":
            if archive.is_file():
                return archive, pathlib.Path(given) / "include"
        sys.exit(f"TATCELL_LIB is {given}: there is no libtatcell.a in it, nor in its folder lib")
    if VENDOR.is_dir():
        # The folder is named after the processor and the C library: x86_64-linux-gnu.
        archive = VENDOR / str(sysconfig.get_config_var("MULTIARCH")) / "libtatcell.a"
        if not archive.is_file():
            target = HERE / "build" / "crate"
            command = [
                "cargo",
                "rustc",
                "--release",
                "--lib",
                "--features",
                "capi,host",
                "--crate-type",
                "staticlib",
                "--manifest-path",
                str(VENDOR / "crate" / "Cargo.toml"),
                "--target-dir",
                str(target),
            ]
            run(command, "this source distribution has no archive for your platform, so it needs Rust")
            archive = target / "release" / "libtatcell.a"
        return archive, VENDOR / "crate" / "include"
    run(["make", "-C", str(CHECKOUT), "lib"], "a checkout builds the library with Rust, binutils and make")
    return CHECKOUT / "target" / "c" / "libtatcell.a", CHECKOUT / "include"


def run(command: list[str], need: str) -> None:
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{need}: {error}\nOr set TATCELL_LIB to a folder with libtatcell.a and include/.")


def version() -> str:
    """The version of the library as Python writes it: 0.4.0-dev is 0.4.0.dev0."""
    manifest = next(path for path in (VENDOR / "crate" / "Cargo.toml", CHECKOUT / "Cargo.toml") if path.is_file())
    found = re.search(r'^version = "(.*)"', manifest.read_text(), re.MULTILINE)
    assert found
    return found[1].replace("-dev", ".dev0")


def extension() -> Extension:
    archive, include = library()
    hide = ["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-s"] if sys.platform == "linux" else []
    return Extension(
        "tatcell._core",
        sorted(str(path.relative_to(HERE)) for path in (HERE / "ext").glob("*.c")),
        include_dirs=[str(include)],
        extra_objects=[str(archive)],
        depends=["ext/binding.h", str(archive)],
        extra_compile_args=["-std=c11", "-O2", "-fvisibility=hidden", "-Wall", "-Wextra"],
        extra_link_args=hide,
        py_limited_api=True,
    )


# What reads metadata alone needs no library.
building = not {"egg_info", "dist_info", "sdist"} & set(sys.argv)
setup(
    version=version(),
    ext_modules=[extension()] if building else [],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
