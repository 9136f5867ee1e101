"""The process that loads the other library: serves calls that come through a pipe. Needs nothing but Python itself.

    python -P child.py LIBRARY REPLY_FD NAMES...

Requests on standard input are `<BQQI` (which call, a, b, bytes that follow) and bytes; each is answered, when the
library has returned, by `<BI` (0, bytes that follow) and bytes. A library that ends the process leaves its call
unanswered.
"""

import ctypes
import os
import struct
import sys

REQUEST = struct.Struct("<BQQI")
REPLY = struct.Struct("<BI")
GOOD, FAILED = 0, 1
INIT, EXIT, CONFIG_READ, CONFIG_WRITE, READ, WRITE, CLOCK, HOST_WRITE, HOST_LOG = range(9)
PAGE = 4096


class HostMemory:
    """The host's memory for the chip: what a trace says, what the chip has written, zeros elsewhere."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}
        self.log: list[tuple[int, bytes]] = []

    def read(self, address: int, size: int) -> bytes:
        """Bytes at an address."""
        out = bytearray()
        while size > 0:
            page, at = divmod(address, PAGE)
            take = min(size, PAGE - at)
            out += self._pages.get(page, bytes(PAGE))[at : at + take]
            address, size = address + take, size - take
        return bytes(out)

    def put(self, address: int, content: bytes) -> None:
        """Set bytes, as the host does."""
        while content:
            page, at = divmod(address, PAGE)
            take = min(len(content), PAGE - at)
            self._pages.setdefault(page, bytearray(PAGE))[at : at + take] = content[:take]
            address, content = address + take, content[take:]

    def write(self, address: int, content: bytes) -> None:
        """Bytes from the chip."""
        self.log.append((address, content))
        self.put(address, content)

    def packed_log(self) -> bytes:
        """What the chip has written, in order."""
        return b"".join(struct.pack("<QI", address, len(content)) + content for address, content in self.log)


def _send(descriptor: int, status: int, content: bytes = b"") -> None:
    data = REPLY.pack(status, len(content)) + content
    while data:
        data = data[os.write(descriptor, data) :]


def _load(path: str, names: list[str]) -> ctypes.CDLL:
    """The library, with the types of its functions.

    Raises:
        OSError: it cannot be loaded, or lacks functions.
    """
    library = ctypes.CDLL(path)
    missing = [name for name in names if not hasattr(library, name)]
    if missing:
        raise OSError(f"it has no function {', '.join(missing)}")
    u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
    for name, result, arguments in (
        ("libttsim_init", None, []),
        ("libttsim_exit", None, []),
        ("libttsim_pci_config_rd32", u32, [u32, u32]),
        ("libttsim_pci_config_wr32", None, [u32, u32, u32]),
        ("libttsim_pci_mem_rd_bytes", None, [u64, pointer, u32]),
        ("libttsim_pci_mem_wr_bytes", None, [u64, pointer, u32]),
        ("libttsim_clock", None, [u32]),
    ):
        function = getattr(library, name, None)
        if function is not None:  # clients do without pci_config_wr32 (H2)
            function.restype, function.argtypes = result, arguments
    return library


def _serve(library: ctypes.CDLL, replies: int) -> None:
    host = HostMemory()
    reads = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32)(
        lambda address, to, size: ctypes.memmove(to, host.read(address, size), size) and None
    )
    writes = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint32)(
        lambda address, source, size: host.write(address, ctypes.string_at(source, size))
    )
    library.libttsim_set_pci_dma_mem_callbacks(reads, writes)
    requests = os.fdopen(0, "rb", 1 << 20)
    while len(header := requests.read(REQUEST.size)) == REQUEST.size:
        which, a, b, size = REQUEST.unpack(header)
        answer = b""
        if which == READ:
            buffer = ctypes.create_string_buffer(b)
            library.libttsim_pci_mem_rd_bytes(a, buffer, b)
            answer = buffer.raw
        elif which == CLOCK:
            while a:
                part = min(a, 0xFFFFFFFF)
                library.libttsim_clock(part)
                a -= part
        elif which == CONFIG_READ:
            answer = struct.pack("<I", library.libttsim_pci_config_rd32(a, b))
        elif which == INIT:
            library.libttsim_init()
        elif which == EXIT:
            library.libttsim_exit()
        elif which == HOST_LOG:
            answer = host.packed_log()
        else:
            content = requests.read(size)
            if which == WRITE:
                library.libttsim_pci_mem_wr_bytes(a, content, len(content))
            elif which == HOST_WRITE:
                host.put(a, content)
            else:
                library.libttsim_pci_config_wr32(a, b, int.from_bytes(content, "little"))
        _send(replies, GOOD, answer)


def main() -> None:
    """The process."""
    replies = int(sys.argv[2])
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)  # a library that ends the process may not flush
    try:
        library = _load(sys.argv[1], sys.argv[3:])
    except OSError as error:
        _send(replies, FAILED, str(error).encode())
        os._exit(2)
    _send(replies, GOOD)
    _serve(library, replies)
    os._exit(0)  # the client has ended; destructors of the library are not needed


if __name__ == "__main__":
    main()
