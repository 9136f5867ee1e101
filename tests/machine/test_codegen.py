"""Machine code that calls many functions of the system, and whose data nearly fill a page."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bhemu.machine.codegen import JIT

pytestmark = pytest.mark.skipif(not JIT, reason="nothing is compiled")

PROGRAM = """
import sys
import llvmlite.binding as llvm
from bhemu.machine.codegen import give_room, numba_config, cpu_target

names = "abs atoi labs atol strlen memchr strchr strstr toupper tolower isalpha isdigit rand clock".split()
calls = "".join(f" %r{i} = call i64 @{name}(i64 %a)\\n" for i, name in enumerate(names))
text = "".join(f"declare i64 @{name}(i64)\\n" for name in names) + f'''
@data = global [{int(sys.argv[1])} x i8] c"{"x" * int(sys.argv[1])}"
define i64 @f(i64 %a) {{
 %v = load volatile i64, ptr @data
{calls} ret i64 %v
}}
'''
module = llvm.parse_assembly(text)
if sys.argv[2] == "room":
    give_room(module)
cpu_target.target_context.codegen()
options = {"opt": numba_config.OPT}
cpu_target.target_context.codegen()._customize_tm_options(options)
machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(**options)
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine, use_lmm=True)
engine.add_object_file(llvm.ObjectFileRef.from_data(machine.emit_object(module)))
engine.finalize_object()
print(hex(engine.get_function_address("f")))
"""


def load(data: int, how: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(data), how]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_without_room_data_that_nearly_fill_a_page_end_the_process() -> None:
    assert load(4000, "none").returncode != 0, "llvmlite makes room itself now: `give_room` is not needed any more"


@pytest.mark.parametrize("data", [2000, 3960, 4000, 4040, 4068, 8100])
def test_data_of_any_size_leave_room_for_the_addresses_of_functions(data: int) -> None:
    done = load(data, "room")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0x")
