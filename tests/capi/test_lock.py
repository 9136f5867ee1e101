"""The lock of the C library (bhemu/capi/lock.c): threads exclude each other, whichever was the first one."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

import bhemu.capi
from tests.c_programs import compiler_or_skip

CAPI = Path(bhemu.capi.__file__).parent
PROGRAM = """
#define _GNU_SOURCE
#include "lock.h"
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef REFUSED /* what a container may do */
long syscall(long number, ...)
{
    register long r10 __asm__("r10"), r8 __asm__("r8") = 0, r9 __asm__("r9") = 0;
    long a[4], result;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_membarrier)
        return -1;
    r10 = a[3];
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#endif

enum { ROUNDS = 200000, OTHERS = 2 };
static volatile long counted; /* not atomic: without the lock some are lost */
static volatile int inside, met;

static void *count(void *unused)
{
    for (int n = 0; n < ROUNDS; n++) {
        lock();
        met |= inside++;
        lock(); /* a callback calls again */
        counted++;
        unlock();
        inside--;
        unlock();
    }
    return unused;
}

static void *wait_for_it(void *unused)
{
    lock();
    counted++;
    unlock();
    return unused;
}

static int fork_while_one_waits(void)
{
    pthread_t other;
    int status;
    lock();
    pthread_create(&other, NULL, wait_for_it, NULL);
    while (!the_lock.use && !the_lock.state)
        usleep(100);
    usleep(1000);
    pid_t child = fork();
    if (!child) {
        unlock_in_child();
        lock();
        unlock();
        _exit(counted);
    }
    waitpid(child, &status, 0);
    unlock();
    pthread_join(other, NULL);
    printf("%d %ld\\n", status, counted);
    return 0;
}

static _Atomic int ready, done;

static void stay(void)
{
    for (int n = 0; n < 30; n++) {
        met |= inside++;
        inside--;
    }
}

static void *come(void *unused)
{
    ready = 1;
    lock();
    stay();
    unlock();
    done = 1;
    return unused;
}

/* A second thread comes, again and again, while the first one goes in and out. */
static int come_often(void)
{
    for (int n = 0; n < 10000; n++) {
        pthread_t other;
        the_lock = (struct lock){0};
        ready = done = 0;
        lock();
        unlock();
        pthread_create(&other, NULL, come, NULL);
        while (!ready)
            ;
        while (!done) {
            lock();
            stay();
            unlock();
        }
        pthread_join(other, NULL);
    }
    printf("%d\\n", met);
    return 0;
}

int main(int count_of_arguments, char **arguments)
{
    pthread_t others[OTHERS];
    alarm(120);
    if (count_of_arguments > 1)
        return arguments[1][0] == 'f' ? fork_while_one_waits() : come_often();
    count(NULL);
    for (int n = 0; n < OTHERS; n++)
        pthread_create(&others[n], NULL, count, NULL);
    count(NULL);
    for (int n = 0; n < OTHERS; n++)
        pthread_join(others[n], NULL);
    printf("%ld %d %d\\n", counted - (long)(OTHERS + 2) * ROUNDS, met, the_lock.use == LOCK_SHARED);
    return 0;
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lock")


def built(folder: Path, *flags: str) -> Path:
    compiler = compiler_or_skip("THE LOCK IS NOT TESTED")
    (folder / "program.c").write_text(PROGRAM)
    program = folder / "program"
    sources = [str(folder / "program.c"), str(CAPI / "lock.c")]
    command = [*compiler, "-O2", "-pthread", *flags, "-I", str(CAPI), *sources, "-o", str(program)]
    subprocess.run(command, check=True, timeout=60)
    return program


def output(program: Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], check=True, timeout=150, capture_output=True, text=True).stdout


@pytest.mark.parametrize("flags", [[], ["-DREFUSED"]])
def test_threads_that_come_later_and_the_first_one_exclude_each_other(folder: Path, flags: list[str]) -> None:
    if flags and platform.machine() != "x86_64":
        pytest.skip("the call is made in the assembly of x86-64")
    assert output(built(folder, *flags)) == "0 0 1\n"


def test_a_thread_comes_while_the_first_one_goes_in_and_out(folder: Path) -> None:
    assert output(built(folder), "often") == "0\n"


def test_a_child_that_is_forked_while_another_thread_waits_can_go_on(folder: Path) -> None:
    assert output(built(folder), "fork") == "0 1\n"
