from __future__ import annotations

from pathlib import Path

from exporter.kernel.live import open_kernel


def test_this_machine() -> None:
    kernel = open_kernel()
    assert kernel.live
    assert kernel.sysfs.read("class/net/lo/ifindex") == "1"
    assert [link.name for link in kernel.links.dump() if link.loopback] == ["lo"]
    assert kernel.ethtool.statistics("lo") == ((), ())
    assert kernel.ethtool_netlink.link_state("lo").link is True


def test_other_roots(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys/file").write_text("from sysfs\n")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/file").write_text("from procfs\n")
    kernel = open_kernel(str(tmp_path / "sys"), str(tmp_path / "proc"))
    assert kernel.sysfs.read("file") == "from sysfs"
    assert kernel.sysfs.read_proc("file") == "from procfs\n"
