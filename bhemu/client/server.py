"""The socket at which a running client's simulator waits for a debugger: for one user, one debugger at a time."""

from __future__ import annotations

import base64
import os
import select
import socket
import stat
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from bhemu.chip.device import Device
from bhemu.client.gate import ClientEnded, Gate
from bhemu.client.live import LiveDebug, LiveSession
from bhemu.client.messages import Channel, Ended, Message
from bhemu.client.names import CodeNames
from bhemu.debugger.breakpoints import DebugError
from bhemu.debugger.commands.interpreter import Interpreter
from bhemu.errors import BhemuError, ConfigurationError
from bhemu.gdb.server import serve_connection
from bhemu.loader.boot import core_number
from bhemu.machine.state import TILE

PROTOCOL: Final = 1
LONGEST_PATH: Final = 100
"""Bytes of the name of a socket."""
_BEING_MADE: Final = ".new"
_ONLY_OWNER: Final = 0o177
_MESSAGE_WAIT: Final = 0.5
_CHIP_WAIT: Final = 300.0
"""Seconds that a debugger waits for a chip that is being made."""


def listen(path: Path) -> socket.socket:
    """A socket in the file system, for this user alone.

    Raises:
        ConfigurationError: it cannot be there.
    """
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ConfigurationError(
            f"the name of the socket has more than {LONGEST_PATH} bytes: {path}", remedy="choose a shorter one"
        )
    if path.exists() or path.is_symlink():
        _remove_dead(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(_ONLY_OWNER)
    made = f"{path}{_BEING_MADE}"  # it has its name when one can connect to it
    try:
        with suppress(FileNotFoundError):
            os.unlink(made)
        listener.bind(made)
        listener.listen(4)
        os.rename(made, path)
    except OSError as error:
        listener.close()
        raise ConfigurationError(
            f"no socket can be made at {path}: {error.strerror}", remedy="name a file in a directory of your own"
        ) from None
    finally:
        os.umask(mask)
    return listener


def _remove_dead(path: Path) -> None:
    """Remove what a simulator has left that was killed."""
    if not stat.S_ISSOCK(path.lstat().st_mode):
        raise ConfigurationError(f"{path} is there already, and not a socket", remedy="name a file that is not there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink(missing_ok=True)
            return
    raise ConfigurationError(
        f"another client waits for its debugger at {path}",
        remedy="name another socket; %p in it is the client's number",
    )


class Server:
    """Waits for debuggers of one client.

    Args:
        path: of the socket.
        about: of the client, to find its ELF files.
        say: tells the client's user a sentence.

    Attributes:
        gate: for the present chip; None between two.
    """

    def __init__(self, path: Path, about: dict[str, Any], say: Callable[[str], Any]) -> None:
        self.path = path
        self.gate: Gate | None = None
        self._about = about
        self._say = say
        self._device: Device | None = None
        self._debug: LiveDebug | None = None
        self._busy = threading.Lock()
        self._has_chip = threading.Event()
        self._listener = listen(path)
        threading.Thread(target=self._accept, daemon=True).start()

    def serve(self, device: Device, gate: Gate) -> None:
        """Debug this chip from now on."""
        self._device, self.gate = device, gate
        self._has_chip.set()

    def is_playing(self) -> bool:
        """The chip repeats what it has done."""
        return self._debug is not None and self._debug.history.playing

    def close(self) -> None:
        """The client's process ends: the socket is not there any more."""
        self._listener.close()
        with suppress(OSError):
            self.path.unlink()

    # --- connections ------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_one, args=(connection,), daemon=True).start()

    def _serve_one(self, connection: socket.socket) -> None:
        channel = Channel(connection)
        with connection, suppress(Ended):
            try:
                hello = channel.receive()
                if hello.get("protocol") != PROTOCOL:
                    raise DebugError(
                        "the debugger is of another version of bhemu", remedy="use the one that the client uses"
                    )
                if not self._busy.acquire(blocking=False):
                    raise DebugError(
                        "another debugger is attached to this client", remedy="wait until it has detached: `quit`"
                    )
                try:
                    self._debug_client(channel, hello)
                finally:
                    self._busy.release()
            except ClientEnded as ended:
                channel.send(over=str(ended))
            except BhemuError as error:
                channel.send(error=error.message, remedy=error.remedy)
            except OSError as error:
                channel.send(error=f"the debugger has ended: {error}", remedy="attach again; the client goes on")

    def _debug_client(self, channel: Channel, hello: Message) -> None:
        self._has_chip.wait(_CHIP_WAIT)
        gate, device = self.gate, self._device
        if gate is None or device is None:
            raise DebugError("the client has no chip now", remedy="attach when it has called libttsim_init")
        gate.attach()
        try:
            places = [(int(x), int(y)) for x, y in hello.get("tiles", ())]
            self._debug = LiveDebug(device, gate, CodeNames(self._about), places)
        except BaseException:
            gate.detach()
            raise
        gate.begin()
        self._say("a debugger is attached")
        try:
            Conversation(self._debug, channel).serve()
        finally:
            debug, self._debug = self._debug, None
            debug.close()
            self._say("the debugger has detached")


class Conversation:
    """A debugger's front end: its commands, and GDB behind it.

    Args:
        debug: what is debugged.
        channel: to the front end.
    """

    def __init__(self, debug: LiveDebug, channel: Channel) -> None:
        self._debug = debug
        self._channel = channel
        self._refused: BhemuError | None = None
        more = {"file": self._file, "files": self._files}
        self._interpreter = Interpreter(debug, self._print, self._refuse, self._interrupted, more)

    def _print(self, text: str) -> None:
        self._channel.send(text=text)

    def _refuse(self, error: BhemuError) -> None:
        self._channel.send(refused=error.message, remedy=error.remedy)

    def _interrupted(self) -> bool:
        if not self._channel.has_message():
            return False
        self._channel.receive()  # nothing else comes while a command runs
        return True

    def serve(self) -> None:
        """Answer until the front end has had enough."""
        clock = self._debug.clock
        self._channel.send(clock=clock, tiles=[list(place) for place in self._debug.sessions])
        while True:
            while not self._channel.has_message():
                self._debug.gate.check_client()
                select_one(self._channel.socket)
            message = self._channel.receive()
            if "run" in message:
                over = self._interpreter.execute(str(message["run"]))
                self._channel.send(done=True, over=over)
                if over:
                    return
            elif "gdb" in message:
                self._serve_gdb(message["gdb"])
                return
            elif "symbols" in message:
                self._channel.send(symbols=self._interpreter.symbols(str(message["symbols"])))
            elif "names" in message:
                self._channel.send(names=self._interpreter.names)
            elif "tile" in message:
                self._send_tile(message["tile"])

    def _session(self) -> LiveSession:
        session = self._interpreter.session
        assert isinstance(session, LiveSession)
        return session

    def _files(self, _text: str) -> None:
        """files: the ELF files whose code the chosen tile holds, and how GDB reads them."""
        self._print(self._session().describe_files())

    def _file(self, text: str) -> None:
        """file PATH: an ELF file whose code the chosen tile holds."""
        self._session().add_file(Path(text))
        self._files("")

    def _serve_gdb(self, core: str | None) -> None:
        session = self._session()
        try:
            cores = None if core is None else (core_number(core),)
        except BhemuError as error:
            self._channel.send(error=error.message, remedy=error.remedy)
            return
        self._channel.send(gdb=True)
        serve_connection(self._channel.socket, session, cores)

    def _send_tile(self, place: Any) -> None:
        try:
            session = self._debug[int(place[0]), int(place[1])]
        except BhemuError as error:
            self._channel.send(error=error.message, remedy=error.remedy)
            return
        content = zlib.compress(session.record.tobytes(), 1)
        self._channel.send(record=base64.b64encode(content).decode(), size=TILE.itemsize)


def select_one(connection: socket.socket) -> None:
    """Wait a while for something to read."""
    select.select([connection], [], [], _MESSAGE_WAIT)
