"""What the linked code must not contain: instructions that GCC emits by itself and the cores lack."""

from __future__ import annotations

import struct

from bhemu.cc.errors import CompileError

ATOMICS = "use 32-bit __atomic_fetch_add, _or, _and, _xor or __atomic_exchange_n on words in L1"
"""The remedy for atomics that the cores lack."""

_AMO = 0x2F
_LR, _SC = 0x02, 0x03


def text_section(image: bytes) -> tuple[int, bytes]:
    """Address and bytes of section .text of a 32-bit little-endian ELF file."""
    table, size, count, names = struct.unpack_from("<I", image, 32)[0], *struct.unpack_from("<HHH", image, 46)
    headers = [struct.unpack_from("<10I", image, table + size * index) for index in range(count)]
    strings = headers[names][4]
    for name, _, _, address, offset, length, *_ in headers:
        if image[strings + name :].startswith(b".text\0"):
            return address, image[offset : offset + length]
    return 0, b""


def check_instructions(image: bytes, name: str) -> None:
    """Refuse LR and SC, which a compare-and-exchange compiles to (tile T1, T5).

    Raises:
        CompileError: with the addresses.
    """
    address, code = text_section(image)
    found = [
        address + 4 * index
        for index, (word,) in enumerate(struct.iter_unpack("<I", code))
        if word & 0x7F == _AMO and word >> 27 in (_LR, _SC)
    ]
    if found:
        places = ", ".join(f"0x{place:X}" for place in found[:4]) + (" ..." if len(found) > 4 else "")
        raise CompileError(
            f"{name} uses LR/SC at {places}, and the cores have none",
            remedy=ATOMICS,
        )
