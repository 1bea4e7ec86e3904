"""The tests: every claim against the nginx that is installed, and against a later one where its source can be had."""

import argparse
import itertools
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "testing")]

import claims as said  # noqa: E402
import configuration  # noqa: E402
import delays  # noqa: E402
import limits  # noqa: E402
import moving  # noqa: E402
import named  # noqa: E402
import reloads  # noqa: E402
from server import Nginx  # noqa: E402

# A crate of the nginx project that holds the source of a server, and nothing but that is used of it.
CRATE = "nginx-src"
MANIFEST = f"""[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[lib]
path = "lib.rs"
[dependencies]
{CRATE} = "1.28"
"""


def build(*arguments):
    done = subprocess.run([str(HERE / "build"), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)


def later_source(folder):
    """The source of a later nginx from the registry of crates, or why there is none."""
    if not shutil.which("cargo"):
        raise said.Skip("cargo is not installed: its registry has the source of a later nginx")
    if os.environ.get("TATCELL_NO_INSTALL"):
        raise said.Skip("TATCELL_NO_INSTALL is set: unset it to fetch the source of a later nginx")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Cargo.toml").write_text(MANIFEST + "[workspace]\n")
    (folder / "lib.rs").write_text("")
    done = subprocess.run(["cargo", "vendor", "--quiet", "--versioned-dirs", "vendor"], cwd=folder, capture_output=True,
                          text=True, timeout=300)
    found = sorted((folder / "vendor").glob(f"{CRATE}-*/nginx"))
    if done.returncode or not found:
        raise said.Skip(f"the registry of crates has no {CRATE}: {done.stderr.strip().splitlines()[-1:]}")
    return found[-1]


def suites(claims, part, prefix, binary, module, folder):
    """Every file of claims against one server; each claim starts one of its own."""
    numbers = itertools.count()

    def server():
        return Nginx(str(binary), str(module), folder / f"{next(numbers)}")

    class Named:
        def claim(self, name, ask):
            if part in name:
                claims.claim(f"{prefix}: {name}", ask)

    for suite in (configuration, limits, moving, delays, reloads, named):
        suite.claims(Named(), server)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stage", required=True)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--source", required=True, type=pathlib.Path)
    parser.add_argument("--nginx", default="nginx")
    parser.add_argument("--claims", default="", help="only claims whose names contain this")
    parser.add_argument("--only", help="the installed server, or the later one", choices=["installed", "later"])
    given = parser.parse_args()
    given.build = given.build.resolve()
    claims = said.Claims()

    def installed():
        if not shutil.which(given.nginx):
            raise said.Skip(f"{given.nginx} is not installed: apt-get install nginx")
        if not given.source.exists():
            raise said.Skip(f"no source in {given.source}: apt-get install nginx-dev libpcre2-dev zlib1g-dev "
                            "libssl-dev, or set NGINX_SRC")
        build("module", given.build / "installed", given.source, given.stage, given.nginx, os.cpu_count())

    def later():
        source = later_source(given.build / "fetch")
        build("server", given.build / "later", source, given.stage, os.cpu_count())

    for which, make in ("installed", installed), ("later", later):
        if given.only not in (None, which):
            continue
        before = claims.passed
        claims.claim(f"the_module_builds_without_a_warning_for_the_{which}_nginx", make)
        if claims.passed == before:
            continue
        folder = given.build / which
        binary = given.nginx if which == "installed" else folder / "nginx"
        version = subprocess.run([str(binary), "-v"], capture_output=True, text=True).stderr.strip().split("/")[-1]
        suites(claims, given.claims, version, binary, folder / "ngx_http_tatcell_module.so", folder / "run")
    claims.end()


if __name__ == "__main__":
    main()
