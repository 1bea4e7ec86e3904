"""Writes each test as a line PASS, FAIL or SKIP into the file TATCELL_LINES, for mk/count.sh."""

import os
import pathlib
import uuid
from collections.abc import Iterator

import pytest

from tatcell import Limiter

SECOND = 1_000_000_000


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    path = os.environ.get("TATCELL_LINES")
    if not path:
        return
    line = ""
    name = report.nodeid.replace(" ", "_")
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        line = f"SKIP {name}: {why}\n"
    elif report.failed:
        line = f"FAIL {name}\n"
    elif report.when == "call":
        line = f"PASS {name}\n"
    with open(path, "a") as file:
        file.write(line)


@pytest.fixture
def shared_name() -> Iterator[str]:
    """A name for shared memory, which is removed afterwards."""
    name = f"/tatcell-test-{uuid.uuid4().hex}"
    yield name
    for path in in_shared_memory(name):
        Limiter.unlink(path)


def in_shared_memory(name: str) -> list[str]:
    """The names in shared memory that begin with a name."""
    return ["/" + path.name for path in pathlib.Path("/dev/shm").glob(name[1:] + "*")]
