"""Reading NCCL logs beside Debian's mtail with an equivalent program, and grep -cE as the floor, in one run on one core.

Run: python -m bench.nccl_lines [--megabytes N] [--rounds N] [--json]; python -m bench.nccl_lines --fuzz 10000000

Two synthetic logs are made from the real ones under tests/nccl/cases, as if their jobs had been started again and again (with
other processes, threads, pointers and identities):

(a) every line is an INFO of NCCL;   (b) a training log, of whose lines 1 % are lines of (a).

mtail's program counts what the exporter's metrics show of such logs: channels by direction, network and path, channels inside
the host, networks, completions by status, asynchronous events, failures by class, and settings. If the counts of channels,
networks and completions or the names of settings differ, the benchmark ends.
What is measured is the processor time of the program beyond what it takes for an empty log, alternating, the best of the
rounds. fabric-exporter does more with the same lines: it keeps the evidence of each communicator.

--fuzz reads that many real lines with random damage and tells the slowest block and the memory that was taken.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from exporter.nccl.evidence import Evidence
from exporter.nccl.lines import BLOCK
from exporter.nccl.reader import Reader

REPOSITORY = Path(__file__).parent.parent
CASES = REPOSITORY / "tests/nccl/cases"
SOURCES = (
    "h100-2n-pxn",
    "b200-2n-ibext10-timings",
    "h200-2n-ibext",
    "eks-p4d-1n-p2p-cumem",
    "rtx-6gpu-p2p-ring-2.29",
    "v100-opa-16n-2.7.8",
    "roce-2n-nccl-tests",
)
READ = "--read"
PROGRAM = r"""
counter channels by direction, net, path
counter local by kind
counter settings by name
counter networks by network
counter completions by status
counter events by event
counter failures by class

/NCCL (INFO|WARN|ATTN) / {
  /\[(?P<direction>send|receive)\] via NET\/(?P<net>.+?)\/\d+(?:\(\d+\))?(?P<path>(?:\/GDRDMA)?)/ {
    channels[$direction][$net][$path]++
  } else {
    / via (?P<kind>P2P|SHM)\// {
      local[$kind]++
    } else {
      /(?P<name>[A-Z][A-Z0-9_]+) set (?:by environment )?to / {
        settings[$name]++
      } else {
        / Using network (?P<network>.+)$/ {
          networks[$network]++
        } else {
          /Got completion from peer \S+ with (?:error |status=(?:[A-Z_]*\()?)(?P<status>\d+)/ {
            completions[$status]++
          } else {
            /(?:Got (?:non-fatal )?async (?:error )?event ?|async fatal event[^:]*): (?P<event>[A-Za-z_ ]+)/ {
              events[$event]++
            } else {
              /Call to ibv_\w+ failed with error Cannot allocate memory/ {
                failures["memlock"]++
              } else {
                /No space left on device/ {
                  failures["shm"]++
                } else {
                  /no socket interface found|exceeded error retry count|Connection closed by remote peer/ {
                    failures["socket"]++
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
"""
GREP = (
    r"via (NET/.+/[0-9]+|P2P/|SHM/)|Using network |Got completion from peer .* with (error |status=)|async (error |fatal )?event"
    r"|[A-Z][A-Z0-9_]+ set (by environment )?to "
)
POINTER = re.compile(r"0x([0-9a-f]{6,16})\b")
PROCESS = re.compile(r":(\d+):(\d+) \[")
OURS, THEIRS = "fabric-exporter", "mtail"


def relevant(folder: Path) -> list[str]:
    """The INFO lines of the cases, in order."""
    lines: list[str] = []
    for name in SOURCES:
        text = (folder / f"{name}.log").read_text(errors="replace")
        lines += [line for line in text.splitlines() if line.count("NCCL INFO") == 1 and "\r" not in line]
    return lines


def starts(lines: list[str], seed: int) -> Iterator[str]:
    """The lines again and again, each time as the start of another job: other processes, threads, pointers and identities."""
    chance = random.Random(seed)  # not for secrets
    while True:
        shift, mask = chance.randrange(1, 100_000), chance.getrandbits(48)
        for line in lines:
            text = PROCESS.sub(partial(_shifted, shift), line, count=1)
            yield POINTER.sub(partial(_masked, mask), text) + "\n"


def _shifted(shift: int, found: re.Match[str]) -> str:
    return f":{int(found[1]) + shift}:{int(found[2]) + shift} ["


def _masked(mask: int, found: re.Match[str]) -> str:
    return f"0x{int(found[1], 16) ^ mask:x}"


def training(nccl: Iterator[str], seed: int) -> Iterator[str]:
    """What a training job prints, and one line of NCCL to 99 others."""
    chance = random.Random(seed)
    step = 0
    while True:
        for _ in range(99):
            step += 1
            yield (
                f"step {step} loss {chance.random() * 9:.5f} lr 1.0e-4 grad_norm {chance.random():.4f} "
                f"tokens/s {chance.randrange(99999)}.7 mem {chance.randrange(80)} GB\n"
            )
        yield next(nccl)


def write(path: Path, lines: Iterator[str], megabytes: float) -> None:
    """Write lines until the file has its size."""
    size = 0
    with path.open("w") as file:
        while size < megabytes * 1e6:
            text = next(lines)
            file.write(text)
            size += len(text)


def blocks(path: Path) -> Iterator[bytes]:
    """Complete lines of a file, as a follower reads them."""
    rest = b""
    with path.open("rb", buffering=0) as file:
        while block := file.read(BLOCK):
            end = block.rfind(b"\n") + 1
            if end:
                yield rest + block[:end]
                rest = block[end:]
            else:
                rest += block
    if rest:
        yield rest


def read(path: Path) -> dict[str, int]:
    """Read a log as the exporter does, and tell what mtail's program counts."""
    reader, evidence = Reader(), Evidence()
    for block in blocks(path):
        for record, fact in reader.feed(block):
            evidence.take(record, fact, 0.0)
    counts: collections.Counter[str] = collections.Counter()
    for (direction, network, _, _, how), count in evidence.channels.items():
        counts[f"channel {direction} {network} {'gdr' if how == 'gdr' else 'no gdr'}"] += count
    counts["local"] = sum(evidence.local.values())
    for key, tally in evidence.completions.items():
        counts[f"completion {key[0]}"] += tally.lines
    for network, count in evidence.networks.items():
        counts[f"network {network}"] += count
    for name in evidence.settings:
        counts[f"setting {name}"] = 1
    return dict(counts)


def from_mtail(text: str) -> dict[str, int]:
    """The counts of mtail's one-shot output."""
    counts: collections.Counter[str] = collections.Counter()
    for metrics in json.loads(text).values():
        for metric in metrics:
            for one in metric.get("LabelValues") or ():
                labels, value = one["Labels"], one["Value"]["Value"]
                match metric["Name"]:
                    case "channels":
                        direction, net, path = labels
                        counts[f"channel {direction} {net} {'gdr' if path else 'no gdr'}"] += value
                    case "networks":
                        counts[f"network {labels[0]}"] += value
                    case "local":
                        counts["local"] += value
                    case "settings":
                        counts[f"setting {labels[0]}"] = 1
                    case "completions":
                        counts[f"completion {labels[0]}"] += value
    return dict(counts)


def commands(programs: Path) -> dict[str, list[str]]:
    """The programs, without the log they read."""
    return {
        OURS: [sys.executable, "-m", "bench.nccl_lines", READ],
        THEIRS: [THEIRS, "-one_shot", "-port", "0", "-progs", str(programs), "-logs"],
        "grep -cE": ["grep", "-cE", GREP],
    }


def timed(command: list[str], core: int) -> tuple[float, str]:
    """Processor time of a program on one core, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["taskset", "-c", str(core), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "GOMAXPROCS": "1", "LC_ALL": "C.UTF-8"},
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        raise SystemExit(f"{command[0]} ended with {done.returncode}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def compare(options: argparse.Namespace) -> int:
    """Measure all programs on both logs."""
    for tool in ("mtail", "grep", "taskset"):
        if shutil.which(tool) is None:
            print(f"bench.nccl_lines: {tool} is not installed", file=sys.stderr)
            return 1
    core = max(os.sched_getaffinity(0))
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "programs").mkdir()
        (folder / "programs/nccl.mtail").write_text(PROGRAM)
        lines = relevant(options.cases)
        logs = {"a": starts(lines, 1), "b": training(starts(lines, 2), 3)}
        for log, source in logs.items():
            path = folder / f"{log}.log"
            write(path, source, options.megabytes * (1 if log == "a" else 4))
            empty = folder / "empty.log"
            empty.touch()
            seconds: dict[str, float] = {}
            for _ in range(options.rounds):
                printed = {}
                for program, command in commands(folder / "programs").items():
                    start, _ = timed([*command, str(empty)], core)
                    spent, printed[program] = timed([*command, str(path)], core)
                    seconds[program] = min(spent - start, seconds.get(program, spent))
                ours, theirs = json.loads(printed[OURS]), from_mtail(printed[THEIRS])
                if ours != theirs:
                    different = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
                    print(f"({log}) counts differ: " + ", ".join(sorted(different)[:10]), file=sys.stderr)
                    return 1
            size, count = path.stat().st_size, path.read_bytes().count(b"\n")
            for program, spent in seconds.items():
                figures[f"({log}) {program}"] = {
                    "megabytes_per_second": size / spent / 1e6,
                    "lines_per_second": count / spent,
                    "ratio_to_mtail": seconds[THEIRS] / spent,
                }
            path.unlink()
    if options.json:
        print(json.dumps(figures, indent=2))
        return 0
    print("synthetic logs made of real lines; (a) all relevant, (b) 1 % relevant; one core\n")
    print(f"{'':26}{'MB/s':>10}{'lines/s':>14}{'x mtail':>10}")
    for key, row in figures.items():
        print(
            f"{key:26}{row['megabytes_per_second']:>10,.1f}{row['lines_per_second']:>14,.0f}{row['ratio_to_mtail']:>10.1f}"
        )
    print("\nfabric-exporter and mtail counted the same.")
    return 0


def damaged(chance: random.Random, lines: list[bytes], count: int) -> bytes:
    """A block of lines, with bytes changed, put in, taken out and lines cut, joined and blown up."""
    block = bytearray(b"\n".join(chance.choices(lines, k=count)))
    for _ in range(chance.randrange(count)):
        at = chance.randrange(len(block))
        match chance.randrange(6):
            case 0:
                block[at] = chance.randrange(256)
            case 1:
                del block[at : at + chance.randrange(40)]
            case 2:
                block[at:at] = chance.randbytes(chance.randrange(9))
            case 3:
                block[at:at] = chance.choice(lines)[: chance.randrange(200)]
            case 4:
                block[at:at] = chance.choice(
                    (b"\r", b"\0", b"\x1b[3", b" NCCL INFO ", b"Last error:", b"\n", b"]", b"[0]")
                )
            case _:
                if chance.randrange(count) == 0:
                    block[at:at] = bytes(block[at : at + chance.randrange(1, 30)]) * chance.randrange(4000)
    return bytes(block) + b"\n"


def fuzz(options: argparse.Namespace) -> int:
    """Read damaged lines; any exception ends it."""
    chance = random.Random(options.seed)
    lines = [line for path in sorted(options.cases.glob("*.log")) for line in path.read_bytes().splitlines()]
    reader, evidence, slowest, slowest_line = Reader(), Evidence(), 0.0, 0.0
    memory, begin, facts = 0, time.monotonic(), 0
    while reader.lines < options.fuzz:
        block = damaged(chance, lines, 500)
        clock = time.process_time()
        found = reader.feed(block)
        spent = time.process_time() - clock
        slowest = max(slowest, spent / len(block))
        if spent > 0.05:
            for line in block.split(b"\n"):
                clock = time.process_time()
                Reader().feed(line)
                slowest_line = max(slowest_line, time.process_time() - clock)
        for record, fact in found:
            evidence.take(record, fact, 0.0)
        facts += len(found)
        if not memory and reader.lines > options.fuzz / 10:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    print(
        f"{reader.lines:,} damaged lines in {time.monotonic() - begin:,.0f} s, seed {options.seed}: no exception; "
        f"{facts:,} facts, {reader.nccl_lines:,} lines of NCCL, {reader.garbled:,} garbled\n"
        f"slowest block {slowest * 1e6:.2f} us per byte, slowest line {slowest_line * 1e3:.1f} ms (0: no block took 50 ms)\n"
        f"state {len(reader.state()):,} bytes; peak memory grew by {grown / 1024:.1f} MB after the first tenth"
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.nccl_lines", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--megabytes", type=float, default=50, help="size of log (a); (b) is four times as large (default 50)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program; the best counts (default 3)")
    parser.add_argument("--cases", type=Path, default=CASES, help="folder of real logs")
    parser.add_argument("--fuzz", type=int, default=0, metavar="N", help="read N damaged lines instead")
    parser.add_argument("--seed", type=int, default=1, help="of the damage (default 1)")
    parser.add_argument("--json", action="store_true", help="print figures instead of a table")
    parser.add_argument(READ, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read(options.read)))
        return 0
    missing = [name for name in SOURCES if not (options.cases / f"{name}.log").exists()]
    if missing:
        parser.error(f"{options.cases}/{missing[0]}.log is missing: --cases names the folder of the real logs")
    return fuzz(options) if options.fuzz else compare(options)


if __name__ == "__main__":
    sys.exit(main())
