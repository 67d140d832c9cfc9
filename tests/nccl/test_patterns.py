"""Each line belongs to one entry, and no line that matters to none."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from fnmatch import translate

import pytest
from nccl_formats import DATA, Row, message, rows

from exporter.nccl.facts import FAILURES, AsyncEvent, Completion, Fact, Failure, Local, Noise, Record, Report
from exporter.nccl.pattern import Library, Pattern, compiled
from exporter.nccl.patterns import LIBRARIES
from exporter.nccl.table import build, find

TABLE = build(LIBRARIES)
ENTRIES = [(library, pattern) for library in LIBRARIES for pattern in library.patterns]
RELEASE = re.compile(r"\d+\.\d+(\.\d+)?$")


NAMES = {pattern.regex: pattern.name for _, pattern in ENTRIES}


def names(text: str) -> list[str]:
    """The entries that match a message, as the reader finds them."""
    found = [candidate.match(text) for candidate in find(TABLE, text) if candidate.holds in text]
    return [NAMES[match.re] for match in found if match]


def fact(text: str, level: str = "WARN") -> Fact:
    """The fact of a message."""
    for found in find(TABLE, text):
        if found.holds in text and (match := found.match(text)):
            return found.make(match, Record(level, text))  # type: ignore[arg-type]  # a level from a parameter
    raise AssertionError(f"no entry matches {text!r}")


def firsts(pattern: Pattern) -> tuple[str, ...]:
    return (pattern.first,) if isinstance(pattern.first, str) else pattern.first


@pytest.mark.parametrize(("library", "pattern"), ENTRIES, ids=[pattern.name for _, pattern in ENTRIES])
def test_examples_match_their_own_entry_only(library: Library, pattern: Pattern) -> None:
    assert pattern.examples
    for example in pattern.examples:
        matching = [f"{one.name}:{other.name}" for one, other in ENTRIES if other.regex.match(example)]
        assert matching == [f"{library.name}:{pattern.name}"], example
        assert names(example) == [pattern.name], "the first texts of the entry do not find it"
        assert pattern.holds in example
        assert type(fact(example)) in Fact.__args__


def test_names_are_unique_and_releases_are_releases() -> None:
    all_names = [pattern.name for _, pattern in ENTRIES]
    assert len(set(all_names)) == len(all_names)
    for _, pattern in ENTRIES:
        assert all(not release or RELEASE.match(release) for release in (pattern.since, pattern.until)), pattern.name


def test_counted_entries_give_what_their_first_group_says() -> None:
    counted = [pattern for _, pattern in ENTRIES if pattern.counted]
    assert len(counted) == 4
    for pattern in counted:
        for example in pattern.examples:
            match = pattern.regex.match(example)
            local = fact(example)
            assert match is not None
            assert isinstance(local, Local)
            assert local.how == match[1]


def test_every_first_text_begins_an_example_or_is_a_spelling_of_one_that_does() -> None:
    for _, pattern in ENTRIES:
        begun = [first for first in firsts(pattern) if any(example.startswith(first) for example in pattern.examples)]
        assert begun, pattern.name


def unread() -> Iterator[tuple[str, re.Pattern[str], str]]:
    for text in (DATA / "unread.tsv").read_text().splitlines():
        if not text.startswith("#"):
            form, reason = text.split("\t")
            literal = re.sub(r"[\[\]?]", lambda found: f"[{found[0]}]", form)
            yield form, re.compile(translate(literal)), reason


def is_finding(row: Row) -> bool:
    told = r"mismatch|inactive link|inconsistent link|import failed|only %llu|corrected volatile errors (on|at)|differ"
    told += r"|=%s on rank|>30%% off median|net bw: %s rank|disabled on|check: failed on rank"
    told += r"|X[iI]d %u detected(?!.*No user action)"
    quiet = r"no uncorrected"
    return bool(re.search(told, row.format)) and not re.search(quiet, row.format)


@pytest.mark.parametrize("family", sorted({row.family for row in rows()} - {"diag"}))
def test_every_format_is_read_or_listed_with_a_reason(family: str) -> None:
    listed = list(unread())
    for row in rows():
        if row.family != family:
            continue
        reasons = [reason for _, form, reason in listed if form.match(row.format)]
        found = names(message(row))
        assert len(found) == (0 if reasons else 1), (row, message(row), found)
        if row.level == "WARN" and "Call to " not in row.format:
            assert not reasons, f"a WARN is never left out: {row}"


def test_each_listed_format_exists() -> None:
    formats = [row.format for row in rows()]
    for form, regex, reason in unread():
        assert any(regex.match(text) for text in formats), form
        assert reason


def test_diagnostics_that_tell_of_a_fault_are_findings() -> None:
    checked = 0
    for row in rows():
        text = message(row)
        if row.family == "diag" and not text.startswith("word"):
            found = [fact(text)] if names(text) else []
            finding = any(isinstance(one, Report) and one.finding for one in found)
            assert finding == is_finding(row), (row, text)
            checked += finding
    assert checked > 25


def test_failures_have_a_known_class_and_say_something() -> None:
    kinds = set()
    for _, pattern in ENTRIES:
        for example in pattern.examples:
            one = fact(example)
            if isinstance(one, Failure):
                assert one.kind in FAILURES
                assert one.what
                kinds.add(one.kind)
            elif isinstance(one, Noise):
                assert one.what
    assert kinds == set(FAILURES) - {"other"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "NET/IB : Got completion from peer 192.0.2.12<40101> with status=12 opcode=129 len=65536 vendor err 129 (Recv) "
            "localGid ::ffff:198.51.100.182 remoteGids::ffff:198.51.100.221",
            Completion(
                12,
                "RETRY_EXC_ERR",
                129,
                "192.0.2.12",
                "",
                "Recv",
                "::ffff:198.51.100.182",
                "::ffff:198.51.100.221",
                None,
                "IB",
            ),
        ),
        (
            "NET/IB: Got completion from peer fe80::a00:27ff:fe00:a1%ib0<40103> with status=IBV_WC_LOC_PROT_ERR(4) "
            "opcode=IBV_WC_SEND(32564) vendor_err=81 qp_num=77  hca mlx5_3",
            Completion(4, "LOC_PROT_ERR", 81, "fe80::a00:27ff:fe00:a1%ib0", "mlx5_3", queue_pair=77, network="IB"),
        ),
        (
            "NET/IB: Got CQE with error (devIndex=0, req=0x7f2c, comm=0x7f2d (Send), wr_id=1, qp_num=77)",
            Completion(-1, "", None, "", "", queue_pair=77, network="IB", companion=True),
        ),
        ("NET/IB : mlx5_0:1 unknown event type (18)", AsyncEvent("gid_change", "mlx5_0", 1, False)),
        ("NET/IB : mlx5_0:1 unknown event type (99)", AsyncEvent("unknown", "mlx5_0", 1, False)),
        ("NET/IB : mlx5_0:2 Got async error event: port error", AsyncEvent("port_error", "mlx5_0", 2, False)),
        ("NET/IB : Got async event : local catastrophic error", AsyncEvent("device_fatal", "", None, True)),
        ("Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory", ("memlock", 12)),
        ("Call to ibv_modify_qp failed with error Connection timed out", ("verbs", 110)),
        ("Error: failed to extend /dev/shm/nccl-A to 9637892 bytes, error: No space left on device (28)", ("shm", 28)),
        ("socketPollConnect: connect returned No route to host, exceeded error retry count (34)", ("socket", 113)),
    ],
)
def test_what_a_line_says(text: str, expected: Fact | tuple[str, int]) -> None:
    said = fact(text)
    if isinstance(said, Failure):
        assert (said.kind, said.code) == expected
    else:
        assert said == expected


def test_what_nccl_tries_and_gives_up_is_no_failure() -> None:
    for text in (
        "Cuda failure 1 'invalid argument'",
        "Call to ibv_reg_dmabuf_mr failed with error Operation not supported",
    ):
        assert isinstance(fact(text, "INFO"), Noise)
        assert isinstance(fact(text, "WARN"), Failure)


def test_printed_formats_become_regexes() -> None:
    form = compiled("NET/IB: %FDevice %d of %s (%S) at 0x%x, 100%%")
    assert form.first == "NET/IB: "
    assert form.holds == "Device "
    found = form.regex.match("NET/IB: ncclIbTest: Device 3 of mlx5_0 (two words) at 0x1f, 100% and more")
    assert found is not None
    assert found.groups() == ("3", "mlx5_0", "two words", "1f")
    assert compiled("Connected all rings").regex.match("Connected all rings, use ring PXN 0 GDR 1") is None
    assert compiled("ends here$").regex.match("ends here, not") is None
    with pytest.raises(KeyError):
        compiled("%q")


@pytest.mark.parametrize(("library", "pattern"), ENTRIES, ids=[pattern.name for _, pattern in ENTRIES])
def test_no_line_costs_more_than_its_length(library: Library, pattern: Pattern) -> None:
    """A regex whose cost grows with the square of a line would take minutes here."""
    size = 64 * 1024
    pieces = {piece for example in pattern.examples for piece in re.findall(r"[^\s\w]+|\w+\W?", example)}
    begin = time.process_time()
    for first in {*firsts(pattern), *(example[: len(example) // 2] for example in pattern.examples)}:
        for piece in {"a", "0", " ", ":", "<", "[", *sorted(pieces)[:12]}:
            pattern.regex.match(first + piece * (size // len(piece)))
    assert time.process_time() - begin < 30
