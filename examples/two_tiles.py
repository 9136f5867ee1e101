"""A client of the C library: two tiles of a chip, one sends pages to the other, which computes with them.

    bhemu library simulator
    bhemu cc examples/kernels/produce.c -o produce.elf
    bhemu cc examples/kernels/consume.c -o consume.elf --core T1
    bhemu run-client --library simulator --record out -- python examples/two_tiles.py produce.elf consume.elf

It finds the library as tt-umd does, by TT_METAL_SIMULATOR, and needs nothing of bhemu's Python.
"""

import ctypes
import os
import struct
import sys

BAR0 = 0x1_0000_0000
WINDOWS = BAR0 + 0x1FC00000
SOFT_RESET, T_RESET_PC, T_RESET_OVERRIDE = 0xFFB121B0, 0xFFB12228, 0xFFB12234
ALL_HELD = 0x47800
PRODUCER, CONSUMER, FLAG, RESULT = (1, 2), (3, 4), 0x21000, 0x20000
CORE_B, CORE_T1 = 0, 2

lib = ctypes.CDLL(os.environ["TT_METAL_SIMULATOR"])
lib.libttsim_pci_mem_rd_bytes.argtypes = lib.libttsim_pci_mem_wr_bytes.argtypes = [
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_uint32,
]


def aim(tile, address):
    """Let window 0, 2 MiB of BAR0, show a tile; gives the PCI address that leads to `address`."""
    entry = address >> 21 | tile[0] << 43 | tile[1] << 49
    for word in range(3):
        part = struct.pack("<I", entry >> 32 * word & 0xFFFFFFFF)
        lib.libttsim_pci_mem_wr_bytes(WINDOWS + 4 * word, part, 4)
    return BAR0 + (address & 0x1FFFFF)


def write(tile, address, content):
    lib.libttsim_pci_mem_wr_bytes(aim(tile, address), content, len(content))


def read_word(tile, address):
    buffer = ctypes.create_string_buffer(4)
    lib.libttsim_pci_mem_rd_bytes(aim(tile, address), buffer, 4)
    return struct.unpack("<I", buffer.raw[:4])[0]


def load(tile, path):
    """Put an ELF file into L1; gives its entry."""
    with open(path, "rb") as file:
        content = file.read()
    entry, headers = struct.unpack_from("<II", content, 24)
    size, count = struct.unpack_from("<HH", content, 42)
    for index in range(count):
        kind, offset, _, address, length = struct.unpack_from("<5I", content, headers + index * size)
        if kind == 1 and length:
            write(tile, address, content[offset : offset + length])
    return entry


def start(tile, core, entry):
    """Release a core from reset; core B starts at 0."""
    if core != CORE_B:
        write(tile, T_RESET_PC + 4 * (core - 1), struct.pack("<I", entry))
        write(tile, T_RESET_OVERRIDE, struct.pack("<I", 1 << core - 1))
    write(tile, SOFT_RESET, struct.pack("<I", ALL_HELD & ~(1 << 11 + core)))


def main():
    lib.libttsim_init()
    produce, consume = load(PRODUCER, sys.argv[1]), load(CONSUMER, sys.argv[2])
    start(CONSUMER, CORE_T1, consume)
    start(PRODUCER, CORE_B, produce)
    for _ in range(int(sys.argv[3]) if len(sys.argv) > 3 else 100):
        lib.libttsim_clock(100)
    print("pages that have arrived:", read_word(CONSUMER, FLAG), flush=True)
    lib.libttsim_exit()


if __name__ == "__main__":
    main()
