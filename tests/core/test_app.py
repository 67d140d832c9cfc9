"""The exporter put together: readiness, reload, supervision, and what it says of itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from exporter import __version__, app, daemon
from exporter.app import Exporter
from exporter.catalogue import itself
from exporter.config import Settings
from exporter.model import Metric, Reading

MACHINE = "tests/machines/rxe-lab"


def made(config_file: str = "") -> Exporter:
    chosen = Settings(capture=MACHINE, config_file=config_file)
    return Exporter(app.open_kernel_of(chosen), chosen)


def value(readings: list[Reading], metric: Metric, **labels: str) -> float | None:
    found = [
        sample.value
        for reading in readings
        for sample in reading.samples()
        if sample.metric is metric and labels.items() <= dict(sample.labels).items()
    ]
    return found[0] if len(found) == 1 else None


async def test_it_is_ready_after_every_source_was_read() -> None:
    exporter = made()
    ready = [exporter.ready]
    await exporter.first_read()
    ready.append(exporter.ready)
    assert ready == [False, True]
    assert [port.device for port in exporter.inventory().ports] == ["mlx5_0", "mlx5_1"]
    readings = list(await exporter.scrape(None, asyncio.get_running_loop().time() + 5))
    for source in exporter.source_names:
        assert value(readings, itself.SOURCE_SUCCESS, source=source) == 1
    names = {sample.metric.name for reading in readings for sample in reading.samples()}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"} <= names


async def test_a_source_that_is_turned_off_is_not_there() -> None:
    chosen = Settings(capture=MACHINE, disabled=frozenset({"pma"}))
    exporter = Exporter(app.open_kernel_of(chosen), chosen)
    assert "pma" not in exporter.source_names
    await exporter.first_read()
    readings = list(await exporter.scrape(None, asyncio.get_running_loop().time() + 5))
    assert value(readings, itself.SOURCE_SUCCESS, source="pma") is None


async def test_a_reload_takes_the_new_roles_and_a_bad_one_keeps_the_old(tmp_path: Path) -> None:
    path = tmp_path / "config.yml"
    path.write_text("ports:\n- match: mlx5_0\n  role: storage\n")
    exporter = made(config_file=str(path))
    await exporter.first_read()
    assert exporter.inventory().ports[0].role == "storage"

    path.write_text("ports:\n- match: mlx5_0\n  role: frontend\n  rail: 3\n")
    exporter.reload()
    await exporter.discover()
    assert (exporter.inventory().ports[0].role, exporter.inventory().ports[0].rail) == ("frontend", "3")

    path.write_text("ports:\n- match: mlx5_0\n  role: none\n")
    exporter.reload()
    await exporter.discover()
    assert exporter.inventory().ports[0].role == "frontend"
    readings = exporter.itself()
    assert value(readings, itself.CONFIG_SUCCESS) == 0

    path.write_text("")
    exporter.reload()
    assert value(exporter.itself(), itself.CONFIG_SUCCESS) == 1


async def test_a_background_task_that_fails_is_counted_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "RESTART_SECONDS", 0.01)
    runs, restarts = 0, {"links": 0}

    async def task() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise RuntimeError("a fault")
        await asyncio.Event().wait()

    supervised = asyncio.create_task(daemon.supervise("links", task, restarts))
    for _ in range(500):
        if runs == 3:
            break
        await asyncio.sleep(0.01)
    assert (runs, restarts["links"]) == (3, 2)
    supervised.cancel()


async def test_it_says_what_it_was_built_from_when_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert value(made().itself(), itself.BUILD_INFO, revision="0e69a27") is None
    monkeypatch.setattr(app, "REVISION", "0e69a27")
    assert value(made().itself(), itself.BUILD_INFO, version=__version__, revision="0e69a27") == 1


async def test_a_scrape_of_some_sources_tells_of_these_only() -> None:
    exporter = made()
    await exporter.first_read()
    readings = list(await exporter.scrape(frozenset({"rdma"}), asyncio.get_running_loop().time() + 5))
    assert value(readings, itself.SOURCE_SUCCESS, source="rdma") == 1
    assert value(readings, itself.SOURCE_SUCCESS, source="pma") is None
    assert value(readings, itself.STUCK_WORKERS) == 0


async def test_once_has_no_process_metrics() -> None:
    readings = await app.once(Settings(capture=MACHINE))
    assert not [s for reading in readings for s in reading.samples() if s.metric.name.startswith("process_")]


@pytest.mark.parametrize(("duration", "pause"), [(0.0, 0.3), (0.01, 0.3), (0.2, 4.0), (1.0, 20.0), (3.5, 30.0)])
def test_discoveries_take_a_twentieth_of_the_time_when_link_events_never_end(duration: float, pause: float) -> None:
    assert app.settle(duration) == pytest.approx(pause)
