# SPDX-License-Identifier: Apache-2.0
"""No row of the bench grows by more than 1 % over tests/bench/baseline.json; and the pure parts of `tools/nidus bench`."""
import contextlib
import json
import types

import pytest

from conftest import BUILD, make
from nidus_lib import UserError, bench, cli, peers, table


@pytest.fixture(scope="session")
def bench_image(nidus_image):
    make("bench-image")
    return nidus_image


@pytest.mark.xdist_group("bench")
def test_no_row_grew(bench_image, tmp_path):
    rows = bench.known_rows()
    measured = bench.measure(tmp_path, rows)
    baseline = bench.read_baseline(bench.BASELINE)
    print("\n".join(table.aligned(bench.cells(rows, measured, baseline))))
    complaints = bench.grown(measured, baseline)
    assert not complaints, "\n".join([*complaints, bench.ADVICE])


@pytest.mark.xdist_group("bench")
def test_counts(bench_image, tmp_path):
    """The trace shows one entry for one exit, and nearly all ticks of the row as instructions of Nidus."""
    row = bench.chosen(bench.known_rows(), ["cpuid"])
    entry = bench.measure(tmp_path, row, counting=True)["cpuid"]
    assert entry["counts"]["entries"] == 1
    assert entry["counts"]["vmread"] >= 1
    assert 0.8 * entry["ticks"] < entry["counts"]["instructions"] <= entry["ticks"]
    assert not {"rdmsr", "wrmsr", "rdpmc"} & entry["counts"].keys()  # without pmu=on an exit has nothing to do with a PMU


def test_baseline_knows_the_rows():
    assert list(bench.read_baseline(bench.BASELINE)) == [row["name"] for row in bench.known_rows()]
    assert all(row["set"] in bench.SETS for row in bench.known_rows())


# Pure parts


def test_read_rows():
    text = "test: bench\nROW cpuid 1911 16 1\nROW l2-touch-2m 2053 512 1\nPASS measured\nROW bad\n"
    assert table.read_rows(text) == {"cpuid": (119.44, 1), "l2-touch-2m": (4.01, 1)}


@pytest.mark.parametrize("ticks, before, good", [(101, 100, True), (101.1, 100, False), (50, 100, True), (100, None, False)])
def test_grown(ticks, before, good):
    baseline = {} if before is None else {"cpuid": before}
    assert bool(bench.grown({"cpuid": {"ticks": ticks}}, baseline)) != good


def test_chosen():
    rows = bench.known_rows()
    assert bench.chosen(rows, []) == rows
    assert [row["name"] for row in bench.chosen(rows, ["vmread*"])] == ["vmread", "vmread-hot"]
    with pytest.raises(UserError, match="no such row: nonsense"):
        bench.chosen(rows, ["nonsense"])


def traced(address, mnemonic, offset=0):
    return f"(0).[123456] [0x{address + offset:012x}] 0008:{address:016x} (unk. ctxt): {mnemonic} rax, rcx   ; 0f78c8"


def test_read_trace():
    lines = [traced(0x200010, "vmread"), "(0) Magic breakpoint", traced(0x400000, "vmread"), traced(0x200000, "vmread"),
             traced(0x200003, "mov"), traced(0x2fffff, "vmresume"), traced(0x300000, "vmlaunch"), "(0) Magic breakpoint",
             traced(0x200010, "vmread"), "(0) Magic breakpoint", "(0) Magic breakpoint", "(0) Magic breakpoint"]
    assert bench.read_trace(lines, (0x200000, 0x300000)) == [{"instructions": 3, "vmread": 1, "entries": 1}, {"instructions": 0}]


def test_read_trace_of_a_nidus_inside():
    lines = ["(0) Magic breakpoint", traced(0x200010, "vmread"), traced(0x200010, "vmwrite", 0x4000000), traced(0x200020, "mov", 0x4000000),
             traced(0x400000, "vmwrite", 0x4000000), "(0) Magic breakpoint"]
    assert bench.read_trace(lines, (0x200000, 0x300000), inner=True) == [{"instructions": 2, "vmwrite": 1}]
    assert bench.read_trace(lines, (0x200000, 0x300000)) == [{"instructions": 1, "vmread": 1}]


def test_counts_belong_to_the_row_behind_them():
    rows = {"a": (1, 1), "unmarked": (1, 1), "b": (1, 2), "beyond": (1, 3)}
    assert bench.counts_of(rows, [{"instructions": 5}, {"instructions": 7}]) == {
        "a": {"instructions": 5}, "b": {"instructions": 7}, "beyond": {}}


def test_code_of_the_image(bench_image):
    first, last = bench.executable_range(BUILD / "nidus.elf")
    assert 0x100000 <= first < last <= 0x400000  # L1 programs start at 4 MiB: the trace tells them apart by this


def test_table_marks_missed_targets():
    rows = [{"name": "x", "what": "X", "kvm": 1000, "target": 100}, {"name": "y", "what": "Y", "kvm": None, "target": None}]
    found = bench.cells(rows, {"x": {"ticks": 200}, "y": {"ticks": 1.5}}, {"x": 100})
    lines = table.aligned(found)
    assert lines[1].split() == ["x", "X", "200", "1,000", "5", "100", "!", "+100.0", "%"]
    assert lines[2].split() == ["y", "Y", "1.5", "-", "-", "-", "-"]
    assert table.markdown(found)[1:3] == ["|---|---|---:|---:|---:|---:|---:|", "| x | X | 200 | 1,000 | 5 | 100 | ! |"]


def test_write_baseline_keeps_other_rows(tmp_path):
    path = tmp_path / "baseline.json"
    bench.write_baseline(path, {"rdmsr": {"ticks": 7.25}}, {"cpuid": 5, "rdmsr": 6})
    assert json.loads(path.read_text()) == {"cpuid": 5, "rdmsr": 7.25}


def test_command(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "measure", lambda *_: {"cpuid": {"ticks": 102}})
    (tmp_path / "baseline.json").write_text('{"cpuid": 100}')
    argv = ["bench", "--only", "cpuid", "--baseline", str(tmp_path / "baseline.json"), "--json", str(tmp_path / "out.json")]
    assert cli.main(argv) == 0
    assert cli.main([*argv, "--check"]) == 1
    assert "--commit-baseline" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text()) == {"cpuid": {"ticks": 102}}
    assert cli.main([*argv, "--commit-baseline"]) == 0
    assert cli.main([*argv, "--check"]) == 0


def test_table_beside_the_peer():
    rows = [{"name": "x", "what": "X"}, {"name": "y", "what": "Y"}]
    found = peers.cells(rows, {"x": {"ticks": 200}, "y": {"ticks": 2}}, {"off": {"x": 1000}, "auto": {"x": 1100, "y": 30}})
    assert table.markdown(found)[2:] == ["| x | X | 200 | 1,000 | 5 | 1,100 | 5.5 |", "| y | Y | 2 | - | - | 30 | 15 |"]


@pytest.mark.parametrize("text, good", [("ROW cpuid 1 1 1\nSET plain\n", True), ("SET plain\nFAIL set_plain QEMU ends with 1\n", False),
                                        ("qemu: failed to initialize kvm: no\nSET plain\n", False), ("ROW cpuid 1 1 1\n", False)])
def test_peer_that_fails_says_so(monkeypatch, tmp_path, text, good):
    class Console(contextlib.nullcontext):
        lines, tail, trouble = text.splitlines(), str, str

        def start(self):
            return self

        def wait_end(self, _):
            pass

    Console.text = text
    monkeypatch.setattr(peers, "build_iso", lambda *_: None)
    monkeypatch.setattr(peers.machine, "Bochs", lambda *_, **__: Console(Console()))
    if good:
        assert peers.boot(tmp_path, ["plain"], "off") == {"cpuid": 1}
    else:
        with pytest.raises(UserError, match="bench, KVM"):
            peers.boot(tmp_path, ["plain"], "off")


def test_image_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "IMAGE", types.SimpleNamespace(is_file=lambda: False))
    with pytest.raises(UserError, match="make bench-image"):
        bench.boot(tmp_path, "plain", False)
