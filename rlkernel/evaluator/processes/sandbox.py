"""Locks the calling process in for good. It can start no process, use no network, send no signal, write no file and read few.

There are three independent layers, each used where the kernel has it; `level()` says which. Linux only; no privileges needed.
    rlimits    CPU time, address space, file size 0, open files, no core dumps
    seccomp    an allow-list of system calls; everything else fails with EPERM. No fork, exec, socket, kill or ptrace, and no
               open() for writing, so a locked process is alone, mute except for descriptors it holds, and dies whole
    landlock   reading is limited to the interpreter, its libraries and a few devices
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import resource
import signal
import struct
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

_PR_SET_NO_NEW_PRIVS, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_PDEATHSIG = 38, 4, 22, 1
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

# System calls of x86-64 and aarch64 that a locked process keeps: memory, time, reading, and its own threads' locks.
_ALLOWED = {
    "x86_64": (
        "read 0 write 1 close 3 fstat 5 lseek 8 mmap 9 mprotect 10 munmap 11 brk 12 rt_sigaction 13 rt_sigprocmask 14 "
        "rt_sigreturn 15 "
        "pread64 17 readv 19 writev 20 access 21 sched_yield 24 mremap 25 msync 26 mincore 27 madvise 28 dup 32 "
        "nanosleep 35 getpid 39 exit 60 uname 63 getcwd 79 readlink 89 gettimeofday 96 getrlimit 97 getrusage 98 "
        "sysinfo 99 "
        "times 100 getuid 102 getgid 104 geteuid 107 getegid 108 getppid 110 sigaltstack 131 statfs 137 fstatfs 138 gettid "
        "186 time 201 "
        "futex 202 sched_getaffinity 204 set_tid_address 218 getdents64 217 clock_gettime 228 clock_getres 229 "
        "clock_nanosleep 230 "
        "exit_group 231 newfstatat 262 readlinkat 267 faccessat 269 set_robust_list 273 getrandom 318 statx 332 rseq 334 "
        "stat 4 lstat 6 faccessat2 439 getcpu 309 membarrier 324 poll 7 ppoll 271 select 23"
    ),
    "aarch64": (
        "read 63 write 64 close 57 fstat 80 lseek 62 mmap 222 mprotect 226 munmap 215 brk 214 rt_sigaction 134 "
        "rt_sigprocmask 135 "
        "rt_sigreturn 139 pread64 67 readv 65 writev 66 sched_yield 124 mremap 216 msync 227 mincore 232 madvise "
        "233 dup 23 "
        "nanosleep 101 getpid 172 exit 93 uname 160 getcwd 17 gettimeofday 169 getrusage 165 sysinfo 179 times 153 "
        "getuid 174 "
        "getgid 176 geteuid 175 getegid 177 getppid 173 sigaltstack 132 statfs 43 fstatfs 44 gettid 178 futex 98 "
        "sched_getaffinity 123 "
        "set_tid_address 96 getdents64 61 clock_gettime 113 clock_getres 114 clock_nanosleep 115 exit_group 94 newfstatat 79 "
        "readlinkat 78 faccessat 48 set_robust_list 99 getrandom 278 statx 291 rseq 293 faccessat2 439 getcpu 168 membarrier "
        "283 ppoll 73"
    ),
}
_OPEN = {"x86_64": (("open", 2, 1), ("openat", 257, 2)), "aarch64": (("openat", 56, 2),)}
"""The calls that open files, as name, number and index of the argument with the flags. They are allowed for reading only."""
_TGKILL = {"x86_64": 234, "aarch64": 131}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}
# fcntl(F_SETOWN) and ioctl(FIOSETOWN) can aim signals at other processes: only what files need is left.
_BY_COMMAND = {
    "x86_64": ((72, (0, 1, 2, 3, 4, 1030)), (16, (0x5401, 0x5413, 0x5421, 0x541B, 0x5450, 0x5451))),
    "aarch64": ((25, (0, 1, 2, 3, 4, 1030)), (29, (0x5401, 0x5413, 0x5421, 0x541B, 0x5450, 0x5451))),
}
"""The calls fcntl and ioctl by number, with the values of the second argument that are allowed."""
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


class SandboxError(RuntimeError):
    """A layer that this machine offers could not be set up."""


@dataclass(frozen=True, slots=True)
class Level:
    """The layers that this machine offers."""

    seccomp: bool
    landlock: int
    """The version of the kernel's Landlock interface; 0 where there is none."""

    def describe(self) -> str:
        """Name the layers in one line, e.g. `rlimits + seccomp + landlock 4`."""
        layers = ["rlimits"] + (["seccomp"] if self.seccomp else []) + ([f"landlock {self.landlock}"] if self.landlock else [])
        return " + ".join(layers)


_libc = ctypes.CDLL(None, use_errno=True)


@functools.cache
def level() -> Level:
    """Ask the kernel which layers it offers, without changing this process."""
    with open("/proc/self/status") as status:
        seccomp = any(line.startswith("Seccomp:") for line in status) and platform.machine() in _ALLOWED
    abi = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    return Level(seccomp, max(0, int(abi)))


def _filter() -> bytes:
    """Return the seccomp program, in classic BPF, for this machine and this process."""
    machine = platform.machine()
    ld, jeq, jset, ret = 0x20, 0x15, 0x45, 0x06
    allow, deny = 0x7FFF0000, 0x00050000 | errno.EPERM
    code: list[tuple[int, int, int, int]] = [
        (ld, 0, 0, 4),
        (jeq, 1, 0, AUDIT_ARCH[machine]),
        (ret, 0, 0, 0x80000000),
        (ld, 0, 0, 0),
    ]
    words = _ALLOWED[machine].split()
    for number in sorted(int(n) for n in words[1::2]):
        code += [(jeq, 0, 1, number), (ret, 0, 0, allow)]
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    for _, number, flags in _OPEN[machine]:
        code += [(jeq, 0, 4, number), (ld, 0, 0, 16 + 8 * flags), (jset, 1, 0, writing), (ret, 0, 0, allow), (ret, 0, 0, deny)]
    for number, commands in _BY_COMMAND[machine]:
        code += [(jeq, 0, 2 * len(commands) + 2, number), (ld, 0, 0, 24)]
        for command in commands:
            code += [(jeq, 0, 1, command), (ret, 0, 0, allow)]
        code.append((ret, 0, 0, deny))
    # abort() signals its own process, and that alone; limits may be read (prlimit64 without a new value).
    code += [(jeq, 0, 4, _TGKILL[machine]), (ld, 0, 0, 16), (jeq, 0, 1, os.getpid()), (ret, 0, 0, allow), (ret, 0, 0, deny)]
    code += [(jeq, 0, 6, _PRLIMIT[machine]), (ld, 0, 0, 32), (jeq, 0, 3, 0), (ld, 0, 0, 36), (jeq, 0, 1, 0)]
    code += [(ret, 0, 0, allow), (ret, 0, 0, deny)]
    code.append((ret, 0, 0, deny))
    return b"".join(struct.pack("HBBI", *row) for row in code)


def restrict_files(readable: tuple[Path, ...], writable: tuple[Path, ...] = ()) -> None:
    """Restrict files by Landlock, over every access and scope that the kernel knows.

    What lies below `readable` may be read and started, what lies below `writable` may be used in any way, nothing else may.
    Raises SandboxError.
    """
    abi = level().landlock
    files = (1 << (13 if abi == 1 else 14 if abi == 2 else 15 if abi < 5 else 16)) - 1
    network = 3 if abi >= 4 else 0
    scoped = 3 if abi >= 6 else 0
    attr = struct.pack("QQQ", files, network, scoped)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset = _libc.syscall(_LANDLOCK_CREATE, attr, len(attr), 0)
    if ruleset < 0:
        raise SandboxError(f"landlock_create_ruleset: {os.strerror(ctypes.get_errno())}")
    execute, write_file, read_file, read_dir, use_device = 1, 1 << 1, 1 << 2, 1 << 3, 1 << 15
    for path in (*readable, *writable):
        if not path.exists():
            continue
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rights = execute | read_file | (read_dir if path.is_dir() else 0)
        if path in writable:
            rights = files if path.is_dir() else rights | write_file | (use_device & files)
        failed = _libc.syscall(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, fd), 0)
        os.close(fd)
        if failed:
            raise SandboxError(f"landlock_add_rule {path}: {os.strerror(ctypes.get_errno())}")
    if _libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0):
        raise SandboxError(f"landlock_restrict_self: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)


@functools.cache
def interpreter_paths() -> tuple[Path, ...]:
    """Return the paths that importing needs: the interpreter, its packages, shared libraries and a few devices."""
    roots = {
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("stdlib"),
        sysconfig.get_path("purelib"),
        str(Path(__file__).parents[3] / "rlkernel"),
    }
    roots |= {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/dev/null", "/dev/zero"}
    roots |= {"/dev/urandom", "/dev/random", "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat"}
    roots |= {path for path in sys.path if path.startswith("/") and "packages" in path}
    return tuple(Path(root) for root in sorted(roots))


def die_with(parent: int) -> None:
    """Let this process end when `parent`, which forked it, ends in any way. A locked process cannot take that back."""
    if _libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0):
        raise SandboxError(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # it was faster
        os.kill(os.getpid(), signal.SIGKILL)


def limit(*, cpu_seconds: int, memory_bytes: int, files: int = 64) -> None:
    """Set the rlimits alone. `memory_bytes` is the address space on top of what is mapped already, `files` counts descriptors."""
    with open("/proc/self/statm") as statm:
        memory_bytes += int(statm.read().split()[0]) * resource.getpagesize()
    soft = max(1, cpu_seconds)
    lower(resource.RLIMIT_CPU, soft, soft + 1)
    lower(resource.RLIMIT_AS, memory_bytes, memory_bytes)
    lower(resource.RLIMIT_NOFILE, files, files)
    lower(resource.RLIMIT_CORE, 0, 0)


def lower(what: int, soft: int, hard: int) -> None:
    """Set one rlimit, below what this process has already: a shell or a container may allow less than we would."""
    ceiling = resource.getrlimit(what)[1]
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(what, (soft, hard))


def no_new_privileges() -> None:
    """Let no program that this process starts gain privileges, which the layers below ask for. Raises SandboxError."""
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise SandboxError(f"prctl: {os.strerror(ctypes.get_errno())}")


def install(program: bytes) -> None:
    """Filter the system calls of this process and of all that it starts by a program in classic BPF. Raises SandboxError."""
    buffer = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
    if _libc.prctl(_PR_SET_SECCOMP, 2, header, 0, 0):
        raise SandboxError(f"seccomp: {os.strerror(ctypes.get_errno())}")


def confine(
    *, cpu_seconds: int, memory_bytes: int, file_bytes: int, writable: tuple[Path, ...], readable: tuple[Path, ...] = ()
) -> None:  # fmt: skip
    """Confine a child that must still start compilers: rlimits, no new privileges, Landlock, and no seccomp.

    Files are written below `writable` only, each of at most `file_bytes`, and read below `readable` besides what the interpreter
    needs. Raises SandboxError.
    """
    limit(cpu_seconds=cpu_seconds, memory_bytes=memory_bytes, files=256)
    lower(resource.RLIMIT_FSIZE, file_bytes, file_bytes)
    no_new_privileges()
    if level().landlock:
        restrict_files((*interpreter_paths(), *readable), (*writable, Path(os.devnull)))


def lock(*, cpu_seconds: int, memory_bytes: int) -> None:
    """Lock this process in for good. `memory_bytes` is the address space on top of what is mapped already.

    Raises SandboxError when a layer that the kernel offers fails.
    """
    limit(cpu_seconds=cpu_seconds, memory_bytes=memory_bytes)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise SandboxError(f"prctl: {os.strerror(ctypes.get_errno())}")
    if level().landlock:
        restrict_files(interpreter_paths())
    if level().seccomp:
        install(_filter())


def check() -> None:
    """Lock a forked process in, to see that it can be done: otherwise each candidate would be blamed for it. For a process of
    one thread. Raises SandboxError with the fix."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            lock(cpu_seconds=10, memory_bytes=1 << 30)
        except (SandboxError, OSError, ValueError) as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as told:
        why = told.read().decode()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        why = f"ended by {signal.Signals(os.WTERMSIG(status)).name}"
    if why:
        raise SandboxError(
            f"{why}: the kernel lists a layer of the sandbox that a container's profile forbids; allow prctl(PR_SET_SECCOMP) "
            "and the landlock_* system calls there"
        )
