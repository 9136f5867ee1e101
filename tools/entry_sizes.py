"""What an entry is made of: functions below it, and how many instructions they have where each is inlined everywhere.

    python tools/entry_sizes.py MNEMONIC or the name of a part, as `bhemu warm` tells it [--rows 25]

LLVM inlines what has one caller, and unrolls loops with few rounds, so a function that is called at few places of the
text may be in an entry many times, and it is optimized as one function then: the time grows faster than the size. A
function that is called seldom belongs outside (`kernel(seldom=True)`). A row has a function's own instructions, how
often it is called, and its instructions with those of all that it calls.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import tempfile
from collections import Counter, defaultdict
from typing import Any

from bhemu.capi import objects
from bhemu.isa.instructions import BY_OPCODE
from bhemu.machine import codegen
from bhemu.tensix.instruction import HANDLERS


def name_of(symbol: str) -> str:
    """The Python function of one of Numba's symbols."""
    rest, parts = symbol.partition("_ZN")[2], []
    while (length := re.match(r"\d+", rest)) is not None:
        begin, end = length.end(), length.end() + int(length[0])
        parts.append(rest[begin:end])
        rest = re.sub(r"^(B\d+\w*?_3d_3d)?", "", rest[end:])
    return ".".join(part for part in parts if part != "_3clocals_3e") or symbol


def describe(module: Any, rows: int) -> None:
    """Print a table of a module before it is optimized."""
    own: dict[str, int] = {}
    kept: set[str] = set()
    calls: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for function in module.functions:
        if function.is_declaration:
            continue
        instructions = [one for block in function.blocks for one in block.instructions]
        own[function.name] = len(instructions)
        if any(b"noinline" in attribute for attribute in function.attributes):
            kept.add(function.name)
        calls[function.name].update(list(one.operands)[-1].name for one in instructions if one.opcode == "call")
    called = sum(calls.values(), Counter())

    @functools.cache
    def whole(name: str) -> int:
        inside = ((other, count) for other, count in calls[name].items() if other in own and other not in kept)
        return own[name] + sum(count * whole(other) for other, count in inside)

    print(f"{'own':>8}{'called':>8}{'inlined':>10}  function")
    for name in sorted(own, key=lambda name: -whole(name) * max(called[name], 1))[:rows]:
        note = "  (not inlined)" if name in kept else ""
        print(f"{own[name]:8}{called[name]:8}{whole(name):10}  {name_of(name)}{note}")
    print()


def main() -> None:
    """Print a table for each entry of a part."""
    parts = {text: part for part, text in objects._PARTS.items()}
    parts |= {row.mnemonic: opcode for opcode in HANDLERS if (row := BY_OPCODE[opcode]) is not None}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=sorted(parts), metavar="PART")
    parser.add_argument("--rows", type=int, default=25)
    chosen = parser.parse_args()

    def instead(library: Any) -> None:
        if any(function.name.startswith(codegen._ENTRY) for function in library._final_module.functions):
            describe(library._final_module, chosen.rows)

    codegen._numbas_optimize = instead
    with tempfile.TemporaryDirectory() as cache:  # for this code, which is not to be run
        os.environ["BHEMU_CACHE"] = cache
        objects.compile_part(parts[chosen.part])


if __name__ == "__main__":
    main()
