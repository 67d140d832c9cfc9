"""The captured machines of this folder, for every test that wants a host."""

from __future__ import annotations

from pathlib import Path

from exporter.kernel import Kernel
from exporter.kernel.captured import load_capture

MACHINES = Path(__file__).parent


def machine_names() -> tuple[str, ...]:
    """Return the names of all machines."""
    return tuple(sorted(path.name for path in MACHINES.iterdir() if (path / "README.md").is_file()))


def open_machine(name: str) -> Kernel:
    """Return the kernel of a machine. A capture with problems is a mistake in this folder: AssertionError."""
    capture = load_capture(MACHINES / name)
    assert capture.problems == (), capture.problems
    return capture.kernel
