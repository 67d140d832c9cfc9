"""Takes off what runtimes, launchers and frameworks put around a line.

One line in, one line out; nothing is remembered here. Several wrappers may be nested, in any order.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec


class Line(NamedTuple):
    """A line without its wrappers.

    ``stamp`` is the outermost time stamp as printed (RFC 3339) or empty; ``partial`` says that the runtime cut the line and the
    rest follows as another line of the same ``stream``; ``wrappers`` are the names of what was taken off, outermost first.
    """

    text: str
    stamp: str = ""
    stream: str = ""
    partial: bool = False
    wrappers: tuple[str, ...] = ()


class Wrapper(NamedTuple):
    """One kind of wrapper. ``regex`` matches what stands before the line; its groups ``stamp`` and ``stream`` are used."""

    name: str
    regex: re.Pattern[str]
    example: str


_STAMP = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"

# cri-api, kubelet: <stamp> <stream> <tags> <text>; the first tag is P (partial) or F (full)
_CRI = re.compile(rf"({_STAMP}) (stdout|stderr) ([PF])(?::\S{{0,64}})?(?: |$)")
WRAPPERS = (
    Wrapper(
        "kubectl",  # kubectl logs --prefix [--timestamps]
        re.compile(rf"\[pod/[^\]\s]{{1,512}}\] (?:(?P<stamp>{_STAMP}) )?"),
        "[pod/trainer-0/main] text",
    ),
    Wrapper(
        "timestamp",  # kubectl logs --timestamps, mpirun --timestamp-output, collectors
        re.compile(rf"(?P<stamp>{_STAMP})(?:: ?| )"),
        "2024-03-05T08:00:00.123Z: text",
    ),
    Wrapper(
        "openmpi",  # mpirun --tag-output; Open MPI 5: --output tag, tag-detailed, tag-fullname; --timestamp-output before it
        re.compile(
            r"(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})?"
            r"\[[^\]\s,]{1,128},\d+\](?:\[[^\]\s]{1,256}:\d+\])?<(?P<stream>stdout|stderr|stddiag)>:? ?"
        ),
        "[1,5]<stdout>:text",
    ),
    Wrapper("srun", re.compile(r" {0,8}\d{1,8}: "), "12: text"),
    Wrapper("hydra", re.compile(r"\[\d{1,9}\] (?!NCCL )"), "[5] text"),
    Wrapper("torchrun", re.compile(r"\[[A-Za-z_][\w.-]{0,63}\d\]:[ \t]?"), "[rank3]: text"),
    Wrapper(
        "ray",
        re.compile(r"\([^)]{0,128}?\bpid=\d+(?:, ip=[^)\s]{1,64})?\) ?"),
        "(RayWorker pid=123, ip=192.0.2.4) text",
    ),
    Wrapper(
        "stern", re.compile(r"[a-z0-9]+(?:-[a-z0-9.]+){1,12} (?:› )?[a-z0-9][a-z0-9-]{0,62} "), "trainer-0 main text"
    ),
    Wrapper("pager", re.compile(r"[│┃|] ?"), "│ text"),
)
_DEEPEST = 6
_ANSI = re.compile(r"\x1b(?:\[[0-9;:?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)?|[@-Z\\^_])?")
_REPEATED = re.compile(r" \[repeated \d+x across [^\]]{1,40}\]\s*$")
_DOCKER = '{"log":'


class _Docker(msgspec.Struct):
    """One line of Docker's json-file driver; a line over 16 KiB is cut, only its last part ends in a newline."""

    log: str
    stream: str = ""
    time: str = ""


_docker = msgspec.json.Decoder(_Docker)


def plain(text: str) -> str:
    """Text without ANSI codes, NUL bytes and Ray's ``[repeated 3x across cluster]``."""
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "\0" in text:
        text = text.replace("\0", "")
    if text.endswith("]") and " [repeated " in text:
        text = _REPEATED.sub("", text)
    return text


def runtime(text: str) -> Line | None:
    """Take off what the container runtime put around a line (CRI, Docker's json-file), or None where it did not."""
    if text.startswith(_DOCKER):
        try:
            docker = _docker.decode(text)
        except msgspec.MsgspecError:
            return None
        return Line(docker.log.rstrip("\r\n"), docker.time, docker.stream, not docker.log.endswith("\n"), ("docker",))
    if found := _CRI.match(text):
        stamp, stream, flag = found.groups()
        return Line(text[found.end() :].rstrip("\r\n"), stamp, stream, flag == "P", ("cri",))
    return None


def unwrap(text: str) -> Line:
    """Take off all wrappers of a line, the container runtime's too; a line that has none comes back as it is."""
    outer = runtime(text)
    text, stamp, stream, partial, names = outer or Line(text.rstrip("\r\n"))
    text = plain(text)
    for _ in range(_DEEPEST):
        for wrapper in WRAPPERS:
            if found := wrapper.regex.match(text):
                break
        else:
            break
        groups = found.groupdict()
        stamp = stamp or groups.get("stamp") or ""
        stream = groups.get("stream") or stream
        names += (wrapper.name,)
        text = text[found.end() :]
    return Line(text, stamp, stream, partial, names)
