"""Source lines, stacks from call frame information, and variables, of a compiled kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from bhemu import Machine
from bhemu.debugger import show
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.session import DebugSession
from tests.debugger.debug_programs import compile_kernel, line_number

pytestmark = pytest.mark.plain


@pytest.fixture
def session(tmp_path: Path) -> DebugSession:
    machine = Machine()
    machine.load(compile_kernel(tmp_path), "T1")
    machine.start()
    return DebugSession(machine)


def line_of(session: DebugSession) -> int:
    line = session.line(2)
    assert line is not None
    return line.line


def test_breakpoints_on_lines_and_stack(session: DebugSession) -> None:
    session.break_at(f"kernel.c:{line_number('flag = x')}", condition="$a0 == 3")
    session.continue_()
    assert session.where().split()[1] == "inner"
    frames = session.backtrace()
    names = [session.describe(2, frame.pc - 4 * (n > 0)).split()[1].partition("+")[0] for n, frame in enumerate(frames)]
    assert names == ["inner", "work", "main", "_start"]
    assert not any(frame.is_guess for frame in frames[:3])
    session.step(count=2)
    assert session.value("flag") == 3
    assert session.value("flag == 3 && $a0 == 3")
    session.finish()
    assert int(session.runner.state(2).x[10]) == 7


def test_stepping_by_lines(session: DebugSession) -> None:
    session.break_at("work")
    session.continue_()
    session.delete()
    lines = []
    for _ in range(6):
        session.step_line(over_calls=True)
        lines.append(line_of(session))
    assert line_number("flag = x") not in lines
    assert line_number("sum += inner(i) * x") in lines
    for _ in range(10):
        session.step_line()
        if session.where().split()[1] == "inner":
            break
    assert session.where().split()[1] == "inner"


def test_what_is_shown(session: DebugSession) -> None:
    session.break_at("main")
    session.continue_()
    assert "kernel.c" in show.around(session, 2)
    assert f"{line_number('int main')}\tint main(void) {{" in show.around(session, 2)
    text = show.disassembly(session, 2, session.locate("main"), 4)
    assert text.splitlines()[0] == "main:"
    assert "=>*" in text
    assert "=> " in show.listing(session, 2)
    assert "results" in show.memory(session, 2, session.value("results"), 4)
    assert show.stack(session, 2).startswith("#0")
    assert "main" in show.threads(session)


def test_missing_lines_and_sources(session: DebugSession, tmp_path: Path) -> None:
    with pytest.raises(DebugError, match=r"line 900 of kernel\.c"):
        session.break_at("kernel.c:900")
    (tmp_path / "kernel.c").unlink()
    show._sources.clear()
    session.break_at("main")
    session.continue_()
    with pytest.raises(DebugError, match="cannot be read"):
        show.listing(session, 2)


INLINED = """\
volatile unsigned flag;
static inline __attribute__((always_inline)) void kernel_main(unsigned x) {
    flag = x;
    flag = x + 1;
}
int main(void) {
    kernel_main(5);
    flag = 0;
    kernel_main(8);
    return 0;
}
__attribute__((naked, section(".start"))) void _start(void) {
    __asm__ volatile("li sp, 0xffb01000\\n call main\\n ebreak\\n");
}
"""


def test_a_breakpoint_by_name_stops_at_each_place_where_the_function_is_inlined(tmp_path: Path) -> None:
    machine = Machine()
    machine.load(compile_kernel(tmp_path, INLINED), "T1")
    machine.start()
    session = DebugSession(machine)
    point = session.break_at("kernel_main", cores=["T1"])
    assert len(point.addresses) == 2
    assert point.text.endswith("and 1 more, inlined")
    seen = []
    for _ in range(2):
        assert session.continue_().reason == "breakpoint"
        executable = session.executable_at(2, session.runner.state(2).pc)
        assert executable is not None
        seen.append((session.runner.state(2).pc, session.value("flag"), line_of(session)))
    assert [pc for pc, _, _ in seen] == sorted(point.addresses)
    assert [flag for _, flag, _ in seen] == [0, 0]
    assert {line for _, _, line in seen} <= {2, 3, 4, 7, 9}
    assert session.continue_().reason == "halt"
    assert session.break_at("T1.kernel_main").addresses == point.addresses
