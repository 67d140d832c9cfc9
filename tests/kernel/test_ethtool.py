from __future__ import annotations

import errno
import os
import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.kernel import DriverInfo, Statistics
from exporter.kernel.ethtool import LiveEthtool, decode_names
from tests.namespaces import Namespace


def printed(namespace: Namespace, netdev: str) -> list[tuple[str, int]]:
    """What Debian's ``ethtool -S`` prints, names and values in its order."""
    lines = namespace.run(f"ethtool -S {netdev}").splitlines()
    assert lines[0] == "NIC statistics:"
    pairs = [line.strip().rsplit(": ", 1) for line in lines[1:]]
    return [(name, int(value)) for name, value in pairs]


def veth(namespace: Namespace, queues: int = 1) -> None:
    """Make v0 with its peer w0, both up. With GRO, and without TSO at the sender, w0 counts what it receives by queue."""
    size = f"numtxqueues {queues} numrxqueues {queues}"
    silent = "addrgenmode none up"  # without an address IPv6 sends nothing by itself
    namespace.batch([f"link add v0 {size} type veth peer name w0 {size}"])
    namespace.batch([f"link set v0 {silent}", f"link set w0 {silent}"])
    namespace.run("ethtool -K w0 gro on")
    namespace.run("ethtool -K v0 tso off")


def send(netdev: str, frames: int) -> None:
    """Send broadcast UDP frames of many flows, so that they spread over the queues."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((netdev, 0))
        for flow in range(frames):
            header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 64, 0, 0, 64, 17, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
            udp = struct.pack("!HHHH", 1024 + flow, 4791, 44, 0)
            out.send(b"\xff" * 6 + b"\x02\0\0\0\0\1" + b"\x08\0" + header + udp + bytes(36))


def errno_of(call: Callable[[], object]) -> int | None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the number is compared by the caller
        call()
    return caught.value.errno


def test_every_value_is_the_one_ethtool_prints(namespace: Namespace) -> None:
    veth(namespace, 4)
    namespace.inside(lambda: send("v0", 300))
    statistics = namespace.inside(lambda: LiveEthtool().statistics("w0"))
    assert list(zip(statistics.names, statistics.values, strict=True)) == printed(namespace, "w0")
    received = dict(zip(statistics.names, statistics.values, strict=True))
    assert sum(received[f"rx_queue_{queue}_xdp_packets"] for queue in range(4)) >= 300


def test_64_queues_and_the_same_names_again(namespace: Namespace) -> None:
    veth(namespace, 64)

    def read() -> tuple[Statistics, Statistics]:
        ethtool = LiveEthtool()
        return ethtool.statistics("v0"), ethtool.statistics("v0")

    first, second = namespace.inside(read)
    assert list(zip(first.names, first.values, strict=True)) == printed(namespace, "v0")
    assert len(first.names) > 500
    assert second.names is first.names


def test_driver_info(namespace: Namespace) -> None:
    veth(namespace)
    assert namespace.inside(lambda: LiveEthtool().driver_info("v0")) == DriverInfo("veth", "1.0", "", "")
    assert errno_of(lambda: LiveEthtool().driver_info("lo")) == errno.EOPNOTSUPP


def test_driver_info_of_this_machine() -> None:
    nics = [name for name in os.listdir("/sys/class/net") if os.path.exists(f"/sys/class/net/{name}/device/driver")]
    for nic in nics:
        printed = subprocess.run(["ethtool", "-i", nic], check=True, capture_output=True, text=True).stdout
        told = dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)
        info = LiveEthtool().driver_info(nic)
        assert info.driver == told["driver"]
        assert info.firmware_version == told.get("firmware-version", "")
        assert info.bus_info == told.get("bus-info", "")


def test_an_interface_without_statistics_has_none(namespace: Namespace) -> None:
    namespace.ip("link add b0 type bridge")
    assert namespace.inside(lambda: LiveEthtool().statistics("b0")) == ((), ())
    assert LiveEthtool().statistics("lo") == ((), ())


@pytest.mark.parametrize("name", ["", "gone", "lo:1", "lo\0", "a name that is too long for Linux"])
def test_no_such_interface(name: str) -> None:
    assert errno_of(lambda: LiveEthtool().statistics(name)) == errno.ENODEV
    assert errno_of(lambda: LiveEthtool().driver_info(name)) == errno.ENODEV


@pytest.mark.parametrize("calm", [0.0, 60.0])
def test_names_that_change_while_their_number_stays(namespace: Namespace, calm: float) -> None:
    """As when PFC moves from priority 3 to 4 on mlx5: the kernel's check of the count sees nothing."""
    veth(namespace, 16)

    def read() -> list[Statistics]:
        ethtool = LiveEthtool(calm=calm)
        answers = []
        for queues in ("rx 1 tx 8", "rx 3 tx 1", "rx 1 tx 8"):
            subprocess.run(["ethtool", "-L", "w0", *queues.split()], check=True)
            answers.append(ethtool.statistics("w0"))
            assert list(zip(*answers[-1], strict=True)) == printed(namespace, "w0")
        return answers

    first, second, third = namespace.inside(read)
    assert len(first.names) == len(second.names)
    assert first.names != second.names
    assert first.names == third.names


def test_queues_changed_200_times_while_being_read(namespace: Namespace) -> None:
    """Every value stays under its own name: what each queue received is known and does not change any more."""
    veth(namespace, 64)
    namespace.run("ethtool -L v0 rx 3 tx 3")
    namespace.run("ethtool -L w0 rx 3 tx 3")
    namespace.inside(lambda: send("v0", 300))
    expected = {name: value for name, value in printed(namespace, "w0") if value}
    assert {"rx_queue_1_xdp_packets", "rx_queue_2_xdp_packets"} <= expected.keys()
    shapes = ["rx 3 tx 1", "rx 1 tx 8", "rx 64 tx 64", "rx 1 tx 1"]
    ended = threading.Event()
    trouble: list[str] = []
    lengths: set[int] = set()

    def read() -> None:
        ethtool = LiveEthtool()
        while not ended.is_set():
            try:
                statistics = ethtool.statistics("w0")
            except OSError as error:
                if error.errno != errno.EAGAIN:
                    trouble.append(repr(error))
                continue
            lengths.add(len(statistics.names))
            for name, value in zip(statistics.names, statistics.values, strict=True):
                if re.fullmatch(r"[rt]x_queue_\d+_xdp_packets|tx_.*|peer_ifindex", name) and value != expected.get(
                    name, 0
                ):
                    trouble.append(f"{name} {value} of {len(statistics.names)}, not {expected.get(name, 0)}")

    def change() -> None:
        for turn in range(200):
            subprocess.run(["ethtool", "-L", "w0", *shapes[turn % len(shapes)].split()], check=True)

    reader = threading.Thread(target=lambda: namespace.inside(read))
    reader.start()
    namespace.inside(change)
    deadline = time.monotonic() + 10
    while len(lengths) < 2 and time.monotonic() < deadline:
        namespace.inside(change)
    ended.set()
    reader.join()
    assert trouble == []
    assert len(lengths) >= 2


def test_an_interface_renamed_deleted_and_made_again(namespace: Namespace) -> None:
    veth(namespace, 4)

    def read() -> None:
        ethtool = LiveEthtool()
        before = ethtool.statistics("v0")
        namespace.batch(["link set v0 down", "link set v0 name v9"])
        assert errno_of(lambda: ethtool.statistics("v0")) == errno.ENODEV
        assert ethtool.statistics("v9") == before
        namespace.batch(["link delete v9", "link add v0 type veth peer name w0"])
        assert errno_of(lambda: ethtool.statistics("v9")) == errno.ENODEV
        again = ethtool.statistics("v0")
        assert len(again.names) < len(before.names)
        assert list(zip(*again, strict=True)) == printed(namespace, "v0")

    namespace.inside(read)


def test_another_driver_behind_the_same_name(namespace: Namespace) -> None:
    def read() -> None:
        ethtool = LiveEthtool()
        namespace.ip("link add x0 type veth peer name x1")
        assert ethtool.statistics("x0").names[0] == "peer_ifindex"
        namespace.batch(["link set x0 name x9", "link add x0 type bridge"])
        assert ethtool.statistics("x0") == ((), ())
        namespace.batch(["link delete x0", "link set x9 name x0"])
        assert ethtool.statistics("x0").names[0] == "peer_ifindex"

    namespace.inside(read)


def test_nobody_waits_for_ever_behind_a_call_that_does_not_return() -> None:
    ethtool = LiveEthtool(patience=0.05)
    entered, leave = threading.Event(), threading.Event()

    def hang() -> None:
        with ethtool._exclusively():  # stands for firmware that does not answer, which no test machine has
            entered.set()
            leave.wait()

    stuck = threading.Thread(target=hang, daemon=True)
    stuck.start()
    entered.wait()
    assert errno_of(lambda: ethtool.statistics("lo")) == errno.EBUSY
    assert errno_of(lambda: ethtool.driver_info("lo")) == errno.EBUSY
    leave.set()
    stuck.join()
    assert ethtool.statistics("lo") == ((), ())


def test_the_socket_goes_with_its_object() -> None:
    def sockets() -> set[str]:
        links = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
        return {
            target for link in links if os.path.islink(link) and (target := os.readlink(link)).startswith("socket:")
        }

    before = sockets()
    ethtool = LiveEthtool()
    ethtool.statistics("lo")
    (opened,) = sockets() - before
    del ethtool
    assert opened not in sockets()


names = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])).map(str.encode))


@given(names)
def test_names_are_decoded_as_given(given_names: list[bytes]) -> None:
    fitting = [name for name in given_names if len(name) < 32]
    block = b"".join(name.ljust(32, b"\0") for name in fitting)
    assert decode_names(block) == tuple(name.decode() for name in fitting)


@given(st.lists(st.binary(min_size=32, max_size=32)))
def test_any_block_is_decoded_to_as_many_printable_names(fields: list[bytes]) -> None:
    decoded = decode_names(b"".join(fields))
    assert len(decoded) == len(fields)
    for name in decoded:
        assert "\0" not in name
        name.encode()
