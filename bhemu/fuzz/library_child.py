"""The process that has the other library: runs cases in processes that it forks, as a library ends its process when it
refuses something. Needs nothing but Python itself.

    python -P -S child.py LIBRARY REQUEST_FD REPLY_FD

A request is `<I` (cases) and cases; a case is what `pack_case` makes. Each is answered by `<BI` (how it has ended,
bytes that follow) and bytes: of a case that has ended, `<B` (the end mark was reached) and pages of memory that have
changed, `<I` and 4096 bytes each; of one that the library has ended, the status of the process `<I`, the
clocks before the case `<q`, and what it has printed.
"""

import ctypes
import mmap
import os
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

PAGE = 4096
GONE_ON, ENDED = 0, 1
MORE_CLOCKS = 16
"""A case that has not reached its end mark gets this multiple of its clocks once more."""
SECONDS = 60
_SIZE = struct.Struct("<I")
_CLOCKS = struct.Struct("<q")
REPLY = struct.Struct("<BI")
_WRITE = struct.Struct("<QI")
_CASE = struct.Struct("<IQIIQI")
_PIECE = struct.Struct("<II")
_LARGE = 1 << 30
_DONTDUMP = 16
_CALLBACKS: list[Any] = []
"""The host's memory, for the library: kept, as C does not."""
Write = tuple[int, bytes]
"""(PCI address, bytes)."""
Case = tuple[list[Write], Write, int, int, int, int, list[tuple[int, int]]]


def pack_case(
    writes: list[Write],
    mark: tuple[int, int],
    clocks: int,
    look: int,
    pieces: Sequence[tuple[int, int]],
    after: Write,
) -> bytes:
    """Bytes of a case.

    Args:
        writes: (PCI address, bytes) before the clocks.
        mark: (PCI address, word) that says that it has ended.
        clocks: that pass.
        look: PCI address of memory.
        pieces: (first byte, bytes) of it, by whole pages, that are compared with what `writes` have put there.
        after: (PCI address, bytes) that are written when it has ended.
    """
    head = _CASE.pack(len(writes), mark[0], mark[1], clocks, look, len(pieces))
    head += b"".join(_PIECE.pack(*piece) for piece in pieces)
    return head + b"".join(_WRITE.pack(address, len(content)) + content for address, content in (*writes, after))


def _take(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) != size:
        os._exit(0)  # the client has ended
    return content


def _read_case(stream: BinaryIO) -> Case:
    count, mark, value, clocks, look, size = _CASE.unpack(_take(stream, _CASE.size))
    pieces = [_PIECE.unpack(_take(stream, _PIECE.size)) for _ in range(size)]
    writes = []
    for _ in range(count + 1):
        address, length = _WRITE.unpack(_take(stream, _WRITE.size))
        writes.append((address, _take(stream, length)))
    return writes[:-1], writes[-1], mark, value, clocks, look, pieces


def _load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    library.libttsim_pci_mem_rd_bytes.argtypes = [u64, pointer, u32]
    library.libttsim_pci_mem_wr_bytes.argtypes = [u64, pointer, u32]
    library.libttsim_clock.argtypes = [u32]
    for name in ("init", "pci_mem_rd_bytes", "pci_mem_wr_bytes", "clock"):
        getattr(library, "libttsim_" + name).restype = None
    callback = ctypes.CFUNCTYPE(None, u64, pointer, u32)
    _CALLBACKS[:] = [callback(lambda *_: None), callback(lambda *_: None)]
    library.libttsim_set_pci_dma_mem_callbacks(*_CALLBACKS)
    library.libttsim_init()
    return library


def _make_forkable() -> None:
    """Cut large mappings into pieces: the system does not copy one that is larger than the memory, used or not."""
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    with open("/proc/self/maps") as lines:
        ranges = [line.split()[0].split("-") for line in lines]
    for low, high in ((int(a, 16), int(b, 16)) for a, b in ranges):
        for address in range(low, high if high - low > _LARGE else low, 2 * _LARGE):
            madvise(address, min(_LARGE, high - address), _DONTDUMP)


def _send(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _image(writes: list[Write], address: int, size: int) -> bytes:
    """What the writes have put at an address."""
    image = bytearray(size)
    for start, content in writes:
        low, high = max(start, address), min(start + len(content), address + size)
        if low < high:
            image[low - address : high - address] = content[low - start : high - start]
    return bytes(image)


def _changed_pages(answer: bytearray, first: int, now: bytes, before: bytes) -> None:
    for at in range(0, len(now), PAGE):
        page = now[at : at + PAGE]
        if page != before[at : at + PAGE]:
            answer += _SIZE.pack((first + at) // PAGE) + page


def _run(library: ctypes.CDLL, case: Case, done: memoryview) -> bytes:
    writes, after, mark, value, clocks, look, pieces = case
    for address, content in writes:
        library.libttsim_pci_mem_wr_bytes(address, content, len(content))
    word = ctypes.create_string_buffer(4)
    library.libttsim_clock(clocks)
    passed = clocks
    library.libttsim_pci_mem_rd_bytes(mark, word, 4)
    if int.from_bytes(word.raw, "little") != value:
        library.libttsim_clock(MORE_CLOCKS * clocks)
        passed += MORE_CLOCKS * clocks
        library.libttsim_pci_mem_rd_bytes(mark, word, 4)
    done[1] += passed
    answer = bytearray([int.from_bytes(word.raw, "little") == value])
    for first, size in pieces:
        memory = ctypes.create_string_buffer(size)
        library.libttsim_pci_mem_rd_bytes(look + first, memory, size)
        _changed_pages(answer, first, memory.raw, _image(writes, look + first, size))
    library.libttsim_pci_mem_wr_bytes(after[0], after[1], len(after[1]))
    return bytes(answer)


def _in_a_fork(library: ctypes.CDLL, cases: list[Case], done: memoryview, replies: int) -> None:
    """Run cases from the first that is not done; the last that was begun and not done has ended the process."""
    output = os.memfd_create("output")
    first = done[0]
    process = os.fork()
    if process == 0:
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.alarm(SECONDS)
        done[1] = 0
        for index in range(first, len(cases)):
            answer = _run(library, cases[index], done)
            _send(replies, REPLY.pack(GONE_ON, len(answer)) + answer)
            done[0] = index + 1
        os._exit(0)
    _, status = os.waitpid(process, 0)
    if done[0] < len(cases):
        said = os.pread(output, 1 << 16, max(0, os.fstat(output).st_size - (1 << 16)))
        answer = _SIZE.pack(status) + _CLOCKS.pack(done[1]) + said
        _send(replies, REPLY.pack(ENDED, len(answer)) + answer)
        done[0] += 1
    os.close(output)


def main() -> None:
    """The process."""
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)  # a library that ends the process may not flush
    requests, replies = os.fdopen(int(sys.argv[2]), "rb", 1 << 20), int(sys.argv[3])
    library = _load(sys.argv[1])
    _make_forkable()
    done = memoryview(mmap.mmap(-1, PAGE)).cast("q")  # cases, and the clocks before the one that is being run
    while True:
        cases = [_read_case(requests) for _ in range(_SIZE.unpack(_take(requests, 4))[0])]
        done[0] = 0
        while done[0] < len(cases):
            _in_a_fork(library, cases, done, replies)


if __name__ == "__main__":
    main()
