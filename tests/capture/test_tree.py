"""Sysfs as text: what is written is read again, and looked up as the kernel would look it up."""

from __future__ import annotations

import errno
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.kernel.tree import Entry, Failure, Link, Tree, escape, format_entry, unescape

NAME = st.text(st.characters(codec="utf-8", exclude_characters="/:\n\r!>"), min_size=1, max_size=12).filter(
    lambda name: name not in {".", ".."} and name.strip() == name
)
PATH = st.lists(NAME, min_size=2, max_size=5).map("/".join).filter(lambda path: not path.startswith("grep"))
VALUE = st.one_of(
    st.binary(max_size=40),
    st.text(max_size=40).map(str.encode),
    st.builds(Failure, st.sampled_from(sorted(errno.errorcode))),
    PATH.map(Link),
    st.none(),
)


def parse(text: str) -> Tree:
    problems: list[str] = []
    tree = Tree.parse(text, problems, "sys.txt")
    assert problems == []
    return tree


@given(st.binary(max_size=200))
def test_escapes_give_the_bytes_again(value: bytes) -> None:
    assert unescape(escape(value)) == value
    assert "\n" not in escape(value)


@given(st.dictionaries(PATH.map(lambda path: f"f/{path}"), VALUE, max_size=8))
def test_lines_give_the_tree_again(values: dict[str, bytes | Link | Failure | None]) -> None:
    """Whatever tree there is, its canonical lines describe it."""
    tree = Tree()
    for path, value in values.items():
        try:
            tree.add(Entry(path, value))
        except ValueError:  # below a file that is there already
            continue
    entries = list(tree.entries())
    assert list(parse("\n".join(map(format_entry, entries))).entries()) == entries


@given(st.text(max_size=300))
def test_any_text_gives_a_tree_or_a_problem_with_its_line(text: str) -> None:
    problems: list[str] = []
    tree = Tree.parse(text, problems, "sys.txt")
    assert all(problem.startswith("sys.txt:") for problem in problems)
    assert len(problems) + len(list(tree.entries())) <= text.count("\n") + 1


def test_a_grep_paste_reads_like_the_files() -> None:
    """Paths and values with colons, several lines of one file, an error and a name with a blank."""
    sysfs = parse(
        "/sys/class/infiniband/mlx5_0/ports/1/state:4: ACTIVE\n"
        "/sys/class/infiniband/mlx5_0/node_guid:0c42:a103:0012:3456\n"
        "/sys/class/infiniband/irdma0/ports/1/hw_counters/RNR sent:17\n"
        "/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/eth0/address:0c:42:a1:12:34:56\r\n"
        "/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/eth0/uevent:INTERFACE=eth0\n"
        "/sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/eth0/uevent:IFINDEX=2\n"
        "grep: /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1: Invalid argument\n"
        "grep: /sys/devices/pci0000:00/0000:00:01.0/config: binary file matches\n"
    )
    eth0 = "devices/pci0000:00/0000:00:01.0/0000:03:00.0/net/eth0"
    assert sysfs.read_bytes("class/infiniband/mlx5_0/ports/1/state") == b"4: ACTIVE"
    assert sysfs.read_bytes("class/infiniband/mlx5_0/node_guid") == b"0c42:a103:0012:3456"
    assert sysfs.read_bytes("class/infiniband/irdma0/ports/1/hw_counters/RNR sent") == b"17"
    assert sysfs.read_bytes(f"{eth0}/address") == b"0c:42:a1:12:34:56"
    assert sysfs.read_bytes(f"{eth0}/uevent") == b"INTERFACE=eth0\nIFINDEX=2"
    with pytest.raises(OSError, match="Invalid argument"):
        sysfs.read_bytes("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1")


def test_links_are_followed_as_the_kernel_does() -> None:
    sysfs = parse(
        "class/net/eth0 -> ../../devices/pci0000:00/0000:03:00.0/net/eth0/\n"
        "devices/pci0000:00/0000:03:00.0/net/eth0/device -> ../../../0000:03:00.0\n"
        "devices/pci0000:00/0000:03:00.0/net/eth0/mtu: 1500\n"
        "devices/pci0000:00/0000:03:00.0/driver -> ../../../bus/pci/drivers/mlx5_core\n"
        "absolute -> /sys/class/net/eth0/mtu\n"
        "loop/a -> b\n"
        "loop/b -> a\n"
        "class/empty/\n"
    )
    assert sysfs.resolve("class/net/eth0/device") == "devices/pci0000:00/0000:03:00.0"
    assert sysfs.read_bytes("absolute") == b"1500"
    assert sysfs.list("class/net/eth0") == ("device", "mtu")
    assert sysfs.list("class/empty") == ()
    # what the link leads to is not in the capture, but where it leads is known
    assert sysfs.resolve("class/net/eth0/device/driver") == "bus/pci/drivers/mlx5_core"
    assert sysfs.exists("class/net/eth0/device/driver")
    assert not sysfs.exists("class/net/eth0/device/physfn")


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("loop/a", errno.ELOOP),
        ("class/net/eth1", errno.ENOENT),
        ("class/net/eth0/mtu/x", errno.ENOTDIR),
        ("class/net", errno.EISDIR),
        ("class/net/eth0/speed", errno.EINVAL),
        ("class/net/eth0/driver", errno.ENOENT),
    ],
)
def test_errors_are_the_kernels(path: str, number: int) -> None:
    sysfs = parse(
        "class/net/eth0/mtu: 1500\nclass/net/eth0/speed ! EINVAL\nclass/net/eth0/driver -> ../../../nowhere\n"
        "loop/a -> b\nloop/b -> a\n"
    )
    with pytest.raises(OSError, match=r".") as caught:
        sysfs.read_bytes(path)
    assert caught.value.errno == number


def test_a_bad_line_costs_itself() -> None:
    problems: list[str] = []
    tree = Tree.parse("class/net/eth0/mtu: 1500\nwhat is this\nclass/net/eth0/mtu/x: 1\n", problems, "sys.txt")
    assert problems == [
        "sys.txt:2: expected 'path: value', 'path -> target', 'path ! ERRNO' or 'path/'",
        "sys.txt:3: class/net/eth0/mtu/x: 'mtu' is not a folder",
    ]
    assert tree.read_bytes("class/net/eth0/mtu") == b"1500"


def test_a_file_that_is_no_capture_does_not_flood() -> None:
    problems: list[str] = []
    Tree.parse("what is this\n" * 1000, problems, "sys.txt")
    assert len(problems) == 11
    assert problems[-1] == "sys.txt: 990 more lines that cannot be used"


def test_what_grep_prints_on_this_host() -> None:
    """The real program over the real /sys: every line is of use, and the tree says what the files say."""
    printed = subprocess.run(["grep", "-r", ".", "/sys/class/net/lo/"], capture_output=True, text=True, check=False)
    sysfs = parse(printed.stdout + printed.stderr)
    for attribute in ("address", "mtu", "uevent", "type"):
        assert (
            sysfs.read_bytes(f"class/net/lo/{attribute}").decode()
            == Path(f"/sys/class/net/lo/{attribute}").read_text().strip()
        )
    with pytest.raises(OSError, match="Invalid argument"):
        sysfs.read_bytes("class/net/lo/speed")
