"""The generated documents, and the catalogue as Prometheus' own tool sees it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from exporter.catalogue import METRICS
from exporter.drivers import DRIVERS, GENERIC
from exporter.generate import docs

ROOT = Path(__file__).parent.parent.parent


def test_the_documents_are_up_to_date() -> None:
    assert docs.check(ROOT) == [], "run: fabric-exporter generate"


def test_writing_makes_what_is_missing_or_stale_and_nothing_else(tmp_path: Path) -> None:
    assert docs.check(tmp_path) == ["docs/metrics.md", "docs/drivers.md"]
    assert docs.write(tmp_path) == [tmp_path / "docs/metrics.md", tmp_path / "docs/drivers.md"]
    assert docs.write(tmp_path) == []
    (tmp_path / "docs/metrics.md").write_text("old")
    assert docs.check(tmp_path) == ["docs/metrics.md"]
    assert docs.write(tmp_path) == [tmp_path / "docs/metrics.md"]


def test_every_metric_and_driver_has_its_section_and_every_link_a_target() -> None:
    pages = docs.pages()
    assert re.findall("^### (.*)$", pages["docs/metrics.md"], re.MULTILINE) == [metric.name for metric in METRICS]
    headings = re.findall("^## (.*)$", pages["docs/drivers.md"], re.MULTILINE)
    assert headings[-len(DRIVERS) - 1 :] == [driver.name for driver in (*DRIVERS, GENERIC)]
    targets = set(re.findall(r"metrics\.md#(\w+)", pages["docs/drivers.md"]))
    assert targets <= {metric.name for metric in METRICS}


def test_every_row_of_a_table_has_the_columns_of_its_head() -> None:
    for text in docs.pages().values():
        columns = 0
        for line in text.splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) - 1 if line.startswith("|") else 0
            assert cells == columns or not columns or not cells, line
            columns = cells


def test_promtool_finds_nothing_to_say_about_names_and_help() -> None:
    promtool = shutil.which("promtool")
    assert promtool, "Debian's package prometheus has promtool"
    lines = []
    for metric in METRICS:
        kind = "untyped" if metric.type == "unknown" else metric.type
        labels = ",".join(f'{label}="x"' for label in metric.labels)
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {kind}", f"{metric.name}{{{labels}}} 1"]
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input="\n".join((*lines, "")),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_metric_carries_a_label_that_belongs_to_scrapers_or_rules() -> None:
    owned = {"severity", "node", "instance", "job", "namespace", "pod", "service", "container", "endpoint", "cluster"}
    assert {label for metric in METRICS for label in metric.labels} & {*owned, "direction", "hostname"} == set()
