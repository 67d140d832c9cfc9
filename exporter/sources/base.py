"""What a source is: a list of things to read, and how to read one of them.

A source is read one unit at a time (a port, an interface), so that a unit that hangs costs itself and nothing else. It runs in
one worker thread at a time and keeps what it derives from the kernel's names per unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from exporter.drivers.plan import Resets
from exporter.kernel import Kernel, not_there
from exporter.model import Inventory, Labels, Metric, Netdev, Profile, RdmaPort, Reading, Series, Shape

if TYPE_CHECKING:
    from exporter.nccl.following import Following

T = TypeVar("T")


@dataclass(slots=True)
class Environment:
    """What all sources share.

    ``raw`` says which ``ethtool -S`` names are served as they are (None: none). ``pfc`` is the mask of priorities with PFC on, by
    interface; the dcb source writes it. ``last_down`` is when a link was last seen to go down, by interface index.
    ``outdated`` becomes true when the ports source sees RDMA devices come, go or change their names: no link event tells that.
    ``following`` are the logs that are followed (None: a single reading, or a captured machine).
    """

    kernel: Kernel
    profile: Profile = "core"
    raw: Callable[[str], object] | None = None
    clock: Callable[[], float] = lambda: 0.0
    resets: Resets = field(default_factory=lambda: Resets({}))
    pfc: dict[str, int] = field(default_factory=dict)
    last_down: dict[int, float] = field(default_factory=dict)
    outdated: bool = False
    following: Following | None = None

    def serves(self, metric: Metric) -> bool:
        """True when the metric is part of the profile."""
        return self.profile == "full" or metric.profile == "core"


class Failure(NamedTuple):
    """One read that failed: where, and the error's text."""

    where: str
    error: str


class Trouble:
    """The failures of one reading of a source. "Not there" is no failure (:func:`not_there`)."""

    __slots__ = ("failures",)

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def note(self, where: str, error: OSError | str) -> bool:
        """Note an error; return True when it means only that the device has no such thing."""
        if isinstance(error, OSError):
            if not_there(error):
                return True
            error = error.strerror or str(error)
        self.failures.append(Failure(where, error))
        return False


class Unit(NamedTuple, Generic[T]):
    """One thing that a source reads: a key that names it for good, and what to ask for."""

    key: str
    subject: T


class Shapes:
    """Keeps shapes by their series, so that a reading of the same series has the same shape at every scrape."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Series, ...], Shape] = {}

    def reading(self, samples: Iterable[tuple[Series, int | float]]) -> list[Reading]:
        """Return the samples as one reading, or nothing when there are none."""
        pairs = tuple(samples)
        if not pairs:
            return []
        series = tuple(one for one, _ in pairs)
        shape = self._kept.get(series)
        if shape is None:
            if len(self._kept) > MOST_SHAPES:
                self._kept.clear()
            shape = self._kept[series] = Shape(series)
        return [Reading(shape, tuple(value for _, value in pairs))]


MOST_SHAPES = 4096
"""Shapes that are kept at most; more come only from devices that were renamed thousands of times."""


class Source(Generic[T]):
    """Base of all sources.

    ``name`` is the value of the ``source`` label and of ``--collector.NAME``; ``about`` is its line in the help. A reading
    younger than ``max_age`` seconds is served again. With ``exclusive`` nothing is read while a read that hung is still in
    the kernel.
    """

    name: str
    about: str
    max_age: float = 1.0
    exclusive: bool = False

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.kernel = environment.kernel
        self.shapes = Shapes()

    def begin(self, inventory: Inventory, trouble: Trouble) -> None:
        """Called in the worker before the units of each reading."""

    def units(self, inventory: Inventory) -> Sequence[Unit[T]]:
        """Return what there is to read now."""
        raise NotImplementedError  # every source says what it reads

    def read(self, subject: T, trouble: Trouble) -> list[Reading]:
        """Return the unit's readings. An OSError ends this unit only; failures of single files go to ``trouble``."""
        raise NotImplementedError  # every source says how

    def text(self, path: str, trouble: Trouble) -> str:
        """Return the text of a file of sysfs, empty where it cannot be read; a failure is noted."""
        try:
            return self.kernel.sysfs.read(path)
        except OSError as error:
            trouble.note(path, error)
            return ""


def same_netdev(kernel: Kernel, netdev: Netdev) -> bool:
    """True when the name still belongs to the interface that was discovered: names may be swapped at any moment.

    Asked after a read by name. A captured kernel has no moments.
    """
    return not kernel.live or _says(kernel, f"class/net/{netdev.name}/ifindex", str(netdev.ifindex))


def same_device(kernel: Kernel, port: RdmaPort) -> bool:
    """True when the name still belongs to the RDMA device that was discovered, as :func:`same_netdev`."""
    return not kernel.live or _says(kernel, f"class/infiniband/{port.device}/node_guid", port.node_guid)


def _says(kernel: Kernel, path: str, expected: str) -> bool:
    try:
        return kernel.sysfs.read(path) == expected
    except OSError:
        return not expected


@lru_cache(maxsize=8192)
def series(metric: Metric, identity: Labels, *extra: tuple[str, str]) -> Series:
    """Return the series of a metric, its labels in the metric's order: those of the identity that it declares, and the extra.

    Kept, because sources ask for the same ones at every scrape.
    """
    known = dict((*identity, *extra))
    return Series(metric, tuple((label, known[label]) for label in metric.labels if label in known))
