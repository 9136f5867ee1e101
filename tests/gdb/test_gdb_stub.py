"""GDB's remote stub, asked by a client of the tests over a socket."""

from __future__ import annotations

import threading
from xml.etree import ElementTree

import pytest

from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from bhemu.gdb.server import GdbServer, parse_address
from bhemu.isa.assembler import assemble
from tests.debugger.debug_programs import CALL_NAMES, CALLS, ENTRY, session_of
from tests.debugger.rsp_client import Client, serving
from tests.processes import HANG, wait_until

pytestmark = pytest.mark.plain

COUNTER = "start: li t0, 0\n li t2, 0x20000\nloop: addi t0, t0, 1\n sw t0, 0(t2)\n lw t1, 0(t2)\n j loop"
T0, T1 = ENTRY["T0"], ENTRY["T1"]


def counted(session: DebugSession) -> int:
    """What COUNTER has stored."""
    return int(session.record.l1_u32[0x20000 >> 2])


def xfer(client: Client, kind: str, annex: str = "", size: int = 0x100) -> str:
    text = ""
    while True:
        answer = client.ask(f"qXfer:{kind}:read:{annex}:{len(text):x},{size:x}")
        assert answer[0] in "ml"
        text += answer[1:]
        if answer[0] == "l":
            return text


def test_greeting_and_descriptions() -> None:
    with serving(session_of({"T0": COUNTER, "T1": CALLS}, functions=CALL_NAMES)) as client:
        assert "qXfer:features:read+" in client.ask("qSupported:multiprocess+;xmlRegisters=i386")
        target = ElementTree.fromstring(xfer(client, "features", "target.xml"))
        assert target.findtext("architecture") == "riscv:rv32"
        names = [register.attrib["name"] for register in target.iter("reg")]
        assert names[:3] == ["zero", "ra", "sp"]
        assert names[32] == "pc"
        threads = ElementTree.fromstring(xfer(client, "threads"))
        assert [thread.attrib["name"] for thread in threads] == ["B", "T0", "T1", "T2", "NC"]
        assert [thread.text for thread in threads][:2] == ["in reset", "running"]
        assert client.ask("qfThreadInfo") == "m1,2,3,4,5"
        assert client.ask("qsThreadInfo") == "l"
        assert client.ask("qC") == "QC2"
        assert client.ask("?") == "T05thread:2;"
        assert client.ask("vCont?").startswith("vCont;c")
        assert client.ask("vMustReplyEmpty") == ""
        assert client.ask("qXfer:features:read:other.xml:0,100") == "E00"
        assert bytes.fromhex(client.ask("qThreadExtraInfo,1")).decode() == "in reset"
        assert client.ask("T2") == "OK"
        assert client.ask("T9") == "E01"


def test_no_acknowledgements_when_asked_for() -> None:
    with serving(session_of({"T0": COUNTER})) as client:
        assert client.ask("QStartNoAckMode") == "OK"
        client._reader.acknowledges = False
        client.socket.sendall(b"$?#00")  # checksums no longer count
        assert client.receive().startswith(b"T05")


def test_registers() -> None:
    session = session_of({"T0": COUNTER, "T1": CALLS})
    with serving(session) as client:
        assert client.registers()[32] == T0
        assert client.ask("Hg3") == "OK"
        assert client.registers()[32] == T1
        assert client.ask("p20") == T1.to_bytes(4, "little").hex()
        assert client.ask("P5=78563412") == "OK"
        assert int(session.runner.state(2).x[5]) == 0x12345678
        values = client.registers()
        values[10] = 0xDEADBEEF
        values[32] = T1 + 4
        assert client.ask("G" + b"".join(v.to_bytes(4, "little") for v in values).hex()) == "OK"
        assert client.registers()[10] == 0xDEADBEEF
        assert session.runner.state(2).pc == T1 + 4
        assert client.ask("P0=01000000") == "OK"
        assert client.registers()[0] == 0
        assert client.ask("p99") == "E01"
        assert client.ask("P1") == "E01"
        assert client.ask("Hg9") == "E01"
        assert int.from_bytes(bytes.fromhex(client.ask("p21")), "little") == int(session.record.core_cfg0[2])


def test_memory() -> None:
    session = session_of({"T0": COUNTER, "T1": CALLS})
    with serving(session) as client:
        assert client.ask("M20100,4:01020304") == "OK"
        assert client.ask("m20100,4") == "01020304"
        assert client.write_binary(0x20104, b"}#$*\x00\xff") == "OK"
        assert bytes.fromhex(client.ask("m20104,6")) == b"}#$*\x00\xff"
        assert client.ask("Hg3") == "OK"
        assert client.ask("Mffb00000,2:abcd") == "OK"
        assert bytes(session.tile.cores["T1"].local_ram[:2]) == b"\xab\xcd"
        assert bytes(session.tile.cores["T0"].local_ram[:2]) == b"\0\0"
        for refused in ("mffec0000,4", "mffe80000,4", "m17ffff,4", "m20000", "mxyz,4", "M20000,4:00", "M20000,1:0"):
            assert client.ask(refused) == "E01"
        before = session.tile.snapshot()
        assert client.ask("mffb121f0,4") == client.ask("mffb121f0,4")
        assert session.tile.snapshot() == before
        assert client.ask("Mffe80024,4:00000000") == "OK"  # the semaphore window: a post
        assert session.record.sync.semaphore[1] == 1


def test_stepping_and_breakpoints() -> None:
    session = session_of({"T0": COUNTER, "T1": CALLS})
    with serving(session) as client:
        assert client.ask("s") == "T05thread:2;"
        assert client.registers()[32] == T0 + 4
        assert client.ask("vCont;s:3;c") == "T05thread:3;"
        assert session.runner.state(2).retired == 2
        assert client.ask(f"Z0,{T0 + 16:x},4") == "OK"
        assert client.ask(f"Z0,{T0 + 16:x},4") == "OK"  # inserted again: the same
        assert client.ask("vCont;c") == "T05thread:2;swbreak:;"
        assert client.registers()[32] == T0 + 16
        count = client.registers()[5]
        assert client.ask("c") == "T05thread:2;swbreak:;"
        assert client.registers()[5] == count + 1
        assert client.ask(f"z0,{T0 + 16:x},4") == "OK"
        assert client.ask(f"z0,{T0 + 16:x},4") == "OK"
        assert session.points() == []
        assert client.ask(f"Z1,{T0 + 12:x},4") == "OK"
        assert client.ask(f"s{T0 + 8:x}").startswith("T05thread:2;")
        assert client.registers()[32] == T0 + 12
        for wrong in ("Z0,2,4", "Z0,10001", "Z0", "Z0,400000,4"):
            assert client.ask(wrong) == "E01"
        assert client.ask("Z7,0,4") == ""


def test_watchpoints() -> None:
    session = session_of({"T0": COUNTER, "T1": CALLS})
    with serving(session) as client:
        assert client.ask("Z2,20000,4") == "OK"
        assert client.ask("c") == "T05thread:2;watch:20000;"
        assert client.registers()[32] == T0 + 16
        assert client.ask("z2,20000,4") == "OK"
        assert client.ask("Z3,20000,4") == "OK"
        assert client.ask("c") == "T05thread:2;rwatch:20000;"
        assert client.registers()[32] == T0 + 20
        assert client.ask("z3,20000,4") == "OK"
        assert client.ask("Z4,20000,4") == "OK"
        assert client.ask("c") == "T05thread:2;awatch:20000;"
        assert client.registers()[32] == T0 + 16
        assert client.ask("Z2,ffec0000,4") == "E01"


def test_ends_of_a_run() -> None:
    text = f"start: nop\n ebreak\n .ttinsn {assemble('NOP'):#x}\n lw t0, 1(zero)"
    session = session_of({"T0": text})
    with serving(session) as client:
        assert client.ask("c") == "T05thread:2;"
        assert "T0 has halted: ebreak" in client.console
        assert client.ask("s") == "T05thread:2;"  # a halted core executes nothing
        client.console = ""
        assert client.ask("c") == "T02thread:2;"
        assert "no core or thread can proceed" in client.console
        assert "halted" not in client.monitor("resume T0")
        assert client.ask("c") == "T04thread:2;"
        assert "misaligned" in client.console


def test_ctrl_c_interrupts_a_run() -> None:
    session = session_of({"T0": COUNTER})
    with serving(session) as client:
        client.send("vCont;c")
        wait_until(lambda: counted(session) > 0, "the core's first store")
        client.socket.sendall(b"\x03")
        assert client.receive().startswith(b"T02thread:2;")
        assert client.registers()[5] > 0


def test_a_lost_connection_ends_the_run() -> None:
    session = session_of({"T0": COUNTER})
    with serving(session) as client:
        assert client.ask("Z2,30000,4") == "OK"
        client.send("vCont;c")
        wait_until(lambda: counted(session) > 0, "the core's first store")
    assert session.points() == []
    assert session.poll is None


def test_monitor() -> None:
    with serving(session_of({"T0": COUNTER})) as client:
        assert "thread 1 (math)" in client.monitor("tensix")
        assert "MATH_PACK" in client.monitor("semaphores")
        assert "are empty" in client.monitor("mailboxes")
        assert "Dst rows 4 to 5" in client.monitor("dst 4 2 raw")
        assert "ALU_ACC_CTRL_Fp32_enabled = 0" in client.monitor("config ALU_ACC_CTRL_Fp32_enabled")
        assert "there is no report 'nonsense'" in client.monitor("nonsense")
        assert "queues [THREAD]" in client.monitor("help")


def test_only_one_core_is_shown() -> None:
    session = session_of({"T0": COUNTER, "T1": CALLS})
    with serving(session, (2,)) as client:
        assert client.ask("qfThreadInfo") == "m3"
        assert client.registers()[32] == T1
        assert client.ask("Hg2") == "E01"
        assert client.ask(f"Z0,{T0:x},4") == "OK"
        assert client.ask("vCont;s:3") == "T05thread:3;"


def test_detach_and_kill() -> None:
    for packet, answer in (("D", "OK"), ("D;1", "OK"), ("vKill;1", "OK")):
        session = session_of({"T0": COUNTER})
        server = GdbServer(session, ("127.0.0.1", 0))
        thread = threading.Thread(target=server.serve)
        thread.start()
        client = Client(server.port)
        assert client.ask(f"Z0,{T0:x},4") == "OK"
        assert client.ask(packet) == answer
        thread.join(HANG)
        assert not thread.is_alive()
        assert session.points() == []
        client.socket.close()
        server.close()


def test_a_port_that_is_taken() -> None:
    session = session_of({"T0": COUNTER})
    server = GdbServer(session, ("127.0.0.1", 0))
    with pytest.raises(DebugError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        GdbServer(session, ("127.0.0.1", server.port))
    server.close()


@pytest.mark.parametrize(
    ("text", "address"),
    [(":3333", ("127.0.0.1", 3333)), ("3333", ("127.0.0.1", 3333)), ("host:1", ("host", 1)), ("[::1]:5", ("::1", 5))],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", ":", "host", ":70000", "a:b", ":-1"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(DebugError, match="is not a port"):
        parse_address(text)
