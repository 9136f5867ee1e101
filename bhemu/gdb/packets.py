"""Packets of the GDB remote serial protocol: `$content#checksum`, acknowledged with + or -."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

LARGEST: Final = 0x8000
"""Bytes of a packet, reported to GDB as PacketSize."""
INTERRUPT: Final = b"\x03"
ACKNOWLEDGE: Final = b"+"
REFUSE: Final = b"-"
_ESCAPE: Final = 0x7D
_ESCAPED: Final = frozenset(b"#$}*")
_FLIP: Final = 0x20


def checksum(content: bytes) -> bytes:
    """The two hexadecimal digits after a packet's `#`."""
    return b"%02x" % (sum(content) & 0xFF)


def escape(content: bytes) -> bytes:
    """Binary content, escaped for a packet."""
    if not _ESCAPED.intersection(content):
        return content
    out = bytearray()
    for byte in content:
        if byte in _ESCAPED:
            out += bytes((_ESCAPE, byte ^ _FLIP))
        else:
            out.append(byte)
    return bytes(out)


def unescape(content: bytes) -> bytes:
    """The binary content of a packet; a lone escape at its end is dropped."""
    out = bytearray()
    flip = False
    for byte in content:
        if flip:
            out.append(byte ^ _FLIP)
            flip = False
        elif byte == _ESCAPE:
            flip = True
        else:
            out.append(byte)
    return bytes(out)


def frame(content: bytes) -> bytes:
    """A packet with this content, which is escaped already where that is needed."""
    return b"$" + content + b"#" + checksum(content)


@dataclass
class PacketReader:
    """Splits a stream of bytes into packets; on any input it neither fails nor grows without limit.

    Attributes:
        acknowledges: packets are answered with + or - (until QStartNoAckMode).
    """

    acknowledges: bool = True
    _buffer: bytearray = field(default_factory=bytearray)

    def feed(self, content: bytes) -> tuple[list[bytes], bytes]:
        """The packets (and `INTERRUPT` for Ctrl-C) that are complete now, and what to send back at once.

        Args:
            content: the bytes that have come.
        """
        self._buffer += content
        packets: list[bytes] = []
        replies = b""
        while self._buffer:
            first = self._buffer[:1]
            if first == INTERRUPT:
                packets.append(INTERRUPT)
                del self._buffer[:1]
                continue
            if first != b"$":  # acknowledgements, and noise up to the next packet
                del self._buffer[:1]
                continue
            end = self._buffer.find(b"#", 1)
            if end < 0 or len(self._buffer) < end + 3:
                if len(self._buffer) > 2 * LARGEST:
                    self._buffer.clear()
                    replies += REFUSE if self.acknowledges else b""
                break
            packet, digits = bytes(self._buffer[1:end]), bytes(self._buffer[end + 1 : end + 3])
            del self._buffer[: end + 3]
            restart = packet.rfind(b"$")
            if restart >= 0:  # the beginning of an earlier packet, whose end was lost
                packet = packet[restart + 1 :]
            if self.acknowledges and digits.lower() != checksum(packet):
                replies += REFUSE
                continue
            replies += ACKNOWLEDGE if self.acknowledges else b""
            packets.append(packet)
        return packets, replies
