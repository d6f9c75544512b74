"""Workers that make batches: each is one thread or one process, which can be left while it hangs.

A worker has a queue of its own. So it is known which batch ended a process, and only that process
is replaced.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import queue
import signal
import threading
import time
import weakref
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from multiprocessing import connection, resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

_LONGEST_WAIT = 1.0
"""Seconds that workers which are to end have for their batch; then processes are killed."""


class InThread:
    """A thread, which does not keep the process from ending."""

    def __init__(self, work: Any) -> None:
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_serve, args=(work, self._tasks), name="gpugrad-data", daemon=True
        )
        self._thread.start()

    def submit(self, *task: Any) -> Future[Any]:
        """The future batch of a task."""
        future: Future[Any] = Future()
        self._tasks.put((future, task))
        return future

    def stop(self) -> None:
        """Cancel all tasks but the current one."""
        with contextlib.suppress(queue.Empty):
            while (task := self._tasks.get_nowait()) is not None:
                task[0].cancel()
        self._tasks.put(None)

    def end(self, seconds: float) -> None:
        """Wait for the current task, at most so long."""
        self._thread.join(seconds)

    def __del__(self) -> None:
        self._tasks.put(None)


def _serve(work: Any, tasks: queue.SimpleQueue[Any]) -> None:
    while (task := tasks.get()) is not None:
        future, arguments = task
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(work.batch(*arguments))
            except BaseException as error:
                future.set_exception(error)
        del task, future  # the batch is not kept until the next one


class InProcess:
    """A process, which `end` kills if it has to."""

    def __init__(self, work: Any) -> None:
        context: Any = SpawnContext()  # forks would copy locks of threads
        processes: list[_Process] = []

        def started(*args: Any, **keywords: Any) -> _Process:
            processes.append(_Process(*args, **keywords))
            return processes[-1]

        self._processes, context.Process = processes, started
        self._pool = ProcessPoolExecutor(1, context, _set_work, (work,))
        _live.add(self)
        _end_with_main_thread()

    def submit(self, *task: Any) -> Future[Any]:
        """The future batch of a task."""
        try:
            return self._pool.submit(_batch, *task)
        except BrokenExecutor as error:
            future: Future[Any] = Future()
            future.set_exception(error)
            return future

    def stop(self) -> None:
        """Cancel all tasks but the current one."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def queues(self) -> list[Any]:
        """The queues between the processes, which an ended pool no longer holds."""
        return [getattr(self._pool, name, None) for name in ("_call_queue", "_result_queue")]

    def end(self, seconds: float) -> None:
        """Wait for the current task, at most so long."""
        for process in self._processes:
            if process.pid is not None and not connection.wait([process.sentinel], seconds):
                process.kill()


def end_all(workers: Sequence[InThread | InProcess], seconds: float = _LONGEST_WAIT) -> None:
    """Stop workers, and end them within some seconds."""
    for worker in workers:
        worker.stop()
    deadline = time.monotonic() + seconds
    for worker in workers:
        worker.end(max(deadline - time.monotonic(), 0.0))


# ---- processes

_live: weakref.WeakSet[InProcess] = weakref.WeakSet()
_last: list[Any] = []
"""The workers that live when the interpreter ends, and their queues, which it frees.

Threads, those of a pool too, may be cut off between the end of a semaphore and the note of it. Then
the interpreter warns of a leak.
"""


@functools.cache
def _end_with_main_thread() -> None:
    """End the workers before the interpreter waits for the threads that look after them."""

    def wait() -> None:
        threading.main_thread().join()
        live = list(_live)
        for worker in live:
            _last.extend((worker, *worker.queues()))
        end_all(live)

    threading.Thread(target=wait, name="gpugrad-data-exit", daemon=True).start()


_work: list[Any] = []  # of a worker process, which gets it once


def _set_work(work: Any) -> None:
    _work[:] = [work]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has the loader
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker if its parent is killed, which otherwise leaves it waiting forever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _batch(*task: Any) -> Any:
    return _work[0].batch(*task)


class _Process(SpawnProcess):
    """A process that Ctrl-C does not reach before `_set_work` ignores it.

    Else a worker that still imports would print a traceback and break the pool.
    """

    def start(self) -> None:
        if not hasattr(signal, "pthread_sigmask"):  # Windows
            super().start()
            return
        resource_tracker.ensure_running()  # the first start of it unblocks signals in this thread
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            super().start()  # the new process inherits the mask
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
