"""Processes that work for another one."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time


def end_with_parent() -> None:
    """This process does not go on when the one that wants its results was ended."""
    maker = multiprocessing.parent_process()
    parent = os.getppid()

    def watch() -> None:
        if maker is not None:  # it may have been ended before this process could ask for its number
            maker.join()
        while maker is None and os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
