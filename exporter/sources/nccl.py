"""What the logs of NCCL say, as far as they are followed and committed."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from exporter.catalogue import nccl as catalogue
from exporter.kernel import GpuProcess, GpuProcesses
from exporter.model import Inventory, Reading, Series
from exporter.sources.base import Environment, Source, Trouble, Unit, series

if TYPE_CHECKING:
    from exporter.nccl.keep import Committed, LogView, States

PROCESSES_SECONDS = 30.0
"""How often it is looked which processes hold GPUs: all descriptors of all processes are listed for that."""
PATIENCE_SECONDS = 1.0
"""How long a commit is waited for. When it takes longer the last readings are served."""


class Nccl(Source[None]):
    """Evidence of NCCL's logs, the counters of this host, and which GPU processes leave no evidence."""

    name = "nccl"
    about = "what NCCL's logs say, where logs are configured"

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self._inventory = Inventory()
        self._processes: GpuProcesses | None = None
        self._asked = float("-inf")
        self._faults = 0

    def begin(self, inventory: Inventory, trouble: Trouble) -> None:
        self._inventory = inventory

    def units(self, inventory: Inventory) -> Sequence[Unit[None]]:
        following = self.environment.following
        return (Unit("logs", None),) if following is not None and following.follower is not None else ()

    def read(self, subject: None, trouble: Trouble) -> list[Reading]:
        from exporter.nccl import metrics

        following = self.environment.following
        if following is None or following.follower is None:
            return []
        processes = self._holding_gpus(trouble)
        try:
            with following.follower.committed(PATIENCE_SECONDS) as committed:
                logs = [
                    (log.key, log.evidence, metrics.LogInfo(log.lag, log.evidence.last, alive(log, processes)))
                    for log in committed.logs
                    if log.evidence is not None
                ]
                readings = metrics.readings(
                    logs,
                    self._inventory,
                    time.time(),
                    self.shapes,
                    totals=committed.totals,
                    hostname=os.uname().nodename,
                    gpu_processes=covered(committed, processes),
                )
                states = committed.states
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, "a commit to the state database takes long") from None
        self._note(states, trouble)
        return readings + self.shapes.reading(samples(states))

    def _holding_gpus(self, trouble: Trouble) -> GpuProcesses | None:
        now = self.environment.clock()
        if now - self._asked >= PROCESSES_SECONDS:
            self._asked, self._processes = now, None
            try:
                self._processes = self.kernel.processes.holding_gpus()
            except OSError as error:
                trouble.note("processes", error)
        return self._processes

    def _note(self, states: States, trouble: Trouble) -> None:
        """Say what is wrong with the logs themselves."""
        if states.unreadable:
            trouble.note("logs", "there are files that cannot be read")
        if states.refused:
            trouble.note("logs", "there are folders that cannot be read, or more files than are followed")
        if states.faults > self._faults:
            trouble.note("logs", "a part of a log was passed over")
        self._faults = states.faults


def samples(states: States) -> list[tuple[Series, int | float]]:
    """Return what there is to say of files."""
    found: list[tuple[Series, int | float]] = [
        (series(catalogue.LOGS, (("state", state),)), getattr(states, state))
        for state in ("active", "quiet", "unreadable", "refused")
    ]
    found.append((series(catalogue.LOG_CUT_LINES, ()), states.cut_lines))
    found.append((series(catalogue.LOG_TRUNCATIONS, ()), states.truncations))
    return found


def alive(log: LogView, processes: GpuProcesses | None) -> bool | None:
    """Return whether a process that writes to the log computes on a GPU; None when that cannot be told."""
    if processes is None or log.evidence is None:
        return None
    pids = {process.pid for process in log.evidence.processes.values()}
    if any(process.inner_pid in pids or writes_to(process, log) for process in processes.processes):
        return True
    return False if processes.complete else None


def covered(committed: Committed, processes: GpuProcesses | None) -> tuple[int, int] | None:
    """Return how many processes that compute on GPUs have evidence in a log, and how many have not.

    A process has it when it has a log open, or when lines of its pid are there: of the pid by which it knows itself, which
    several processes may share, as many as there are hosts (containers) that wrote with it. None when it cannot be told.
    """
    if processes is None or not processes.complete:
        return None
    writers: dict[int, set[str]] = {}
    for log in committed.logs:
        for writer in log.evidence.processes.values() if log.evidence is not None else ():
            if writer.fresh:
                writers.setdefault(writer.pid, set()).add(writer.host)
    unclaimed = {pid: len(hosts) for pid, hosts in writers.items()}
    writing = [any(writes_to(process, log) for log in committed.logs) for process in processes.processes]
    yes = 0
    for process, has_log in sorted(zip(processes.processes, writing, strict=True), key=lambda one: not one[1]):
        if has_log or unclaimed.get(process.inner_pid, 0) > 0:
            unclaimed[process.inner_pid] = unclaimed.get(process.inner_pid, 0) - 1
            yes += 1
    return yes, len(processes.processes) - yes


def writes_to(process: GpuProcess, log: LogView) -> bool:
    """True when the process has a file of the log open: of its name or, if it was rotated, a longer one."""
    name, inodes = os.path.basename(log.path), {file.inode for file in log.files}
    return any(inode in inodes and opened.startswith(name) for opened, inode in process.files)
