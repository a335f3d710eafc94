"""Fences in a process that runs a candidate as plain Python: Triton's compiler and the GPU's driver work, and little else does.

`sandbox.lock` allows what a trace needs; nobody can list what a driver and a C compiler need. So this is a list of what is
forbidden, in three layers, each used where the kernel has it:
    rlimits    CPU time, memory, the size of one file, descriptors, processes, no core dumps
    seccomp    no sockets but local ones that connect nowhere; no signals, limits, priorities or memory of other processes; no
               session or group of its own, so that killing the group kills all; no namespaces, mounts, io_uring, owners and
               permissions of files
    landlock   writing below one scratch folder and to the GPU's devices; reading system libraries, headers and /sys
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rlkernel.evaluator.processes.sandbox import (
    AUDIT_ARCH,
    SandboxError,
    die_with,
    install,
    interpreter_paths,
    level,
    lower,
    no_new_privileges,
    restrict_files,
)

# System calls of x86-64 and aarch64 that are refused whatever their arguments.
_DENIED = {
    "x86_64": (
        "connect 42 sendmsg 46 sendmmsg 307 kill 62 tkill 200 rt_sigqueueinfo 129 rt_tgsigqueueinfo 297 pidfd_send_signal 424 "
        "pidfd_open 434 pidfd_getfd 438 ptrace 101 process_vm_readv 310 process_vm_writev 311 process_madvise 440 kcmp 312 "
        "setsid 112 setpgid 109 setpriority 141 ioprio_set 251 "
        "io_uring_setup 425 io_uring_enter 426 io_uring_register 427 unshare 272 setns 308 "
        "mount 165 umount2 166 pivot_root 155 chroot 161 open_tree 428 move_mount 429 fsopen 430 fsconfig 431 fsmount 432 "
        "fspick 433 mount_setattr 442 keyctl 250 add_key 248 request_key 249 bpf 321 perf_event_open 298 userfaultfd 323 "
        "fanotify_init 300 name_to_handle_at 303 open_by_handle_at 304 quotactl 179 acct 163 swapon 167 reboot 169 "
        "kexec_load 246 init_module 175 finit_module 313 delete_module 176 iopl 172 ioperm 173 shmget 29 shmat 30 shmctl 31 "
        "semget 64 semop 65 semctl 66 msgget 68 msgsnd 69 msgrcv 70 msgctl 71 mq_open 240 mq_unlink 241 chmod 90 fchmod 91 "
        "fchmodat 268 fchmodat2 452 chown 92 fchown 93 lchown 94 fchownat 260 setxattr 188 lsetxattr 189 fsetxattr 190 "
        "removexattr 197 lremovexattr 198 fremovexattr 199 utime 132 utimes 235 futimesat 261 utimensat 280"
    ),
    "aarch64": (
        "connect 203 sendmsg 211 sendmmsg 269 kill 129 tkill 130 rt_sigqueueinfo 138 rt_tgsigqueueinfo 240 "
        "pidfd_send_signal 424 pidfd_open 434 pidfd_getfd 438 ptrace 117 process_vm_readv 270 process_vm_writev 271 "
        "process_madvise 440 kcmp 272 setsid 157 setpgid 154 setpriority 140 ioprio_set 30 io_uring_setup 425 io_uring_enter 426 "
        "io_uring_register 427 unshare 97 setns 268 mount 40 umount2 39 pivot_root 41 chroot 51 open_tree 428 move_mount 429 "
        "fsopen 430 fsconfig 431 fsmount 432 fspick 433 mount_setattr 442 keyctl 219 add_key 217 request_key 218 bpf 280 "
        "perf_event_open 241 userfaultfd 282 fanotify_init 262 name_to_handle_at 264 open_by_handle_at 265 quotactl 60 acct 89 "
        "swapon 224 reboot 142 kexec_load 104 init_module 105 finit_module 273 delete_module 106 shmget 194 shmat 196 "
        "shmctl 195 semget 190 semop 193 semctl 191 msgget 186 msgsnd 189 msgrcv 188 msgctl 187 mq_open 180 mq_unlink 181 "
        "fchmod 52 fchmodat 53 fchmodat2 452 fchownat 54 fchown 55 setxattr 5 lsetxattr 6 fsetxattr 7 removexattr 14 "
        "lremovexattr 15 fremovexattr 16 utimensat 88"
    ),
}
_OWN_ONLY = {
    "x86_64": (302, 203, 144, 142, 314, 279, 256),
    "aarch64": (261, 122, 119, 118, 274, 239, 238),
}
"""prlimit64, sched_setaffinity, -scheduler, -param, -attr, move_pages and migrate_pages: their first argument names a process and
must be 0, which is the caller."""
_LOCAL_SOCKETS = {"x86_64": (41, 53), "aarch64": (198, 199)}
"""socket and socketpair: their first argument must be AF_UNIX."""
_SENDTO = {"x86_64": 44, "aarch64": 206}
_TGKILL = {"x86_64": 234, "aarch64": 131}
_PRCTL = {"x86_64": 157, "aarch64": 167}
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
_FALLOCATE = {"x86_64": 285, "aarch64": 47}
"""fallocate takes any amount of a disk faster than anybody can look; libc writes instead where a file system has not got it."""
_COMMANDS = {
    "x86_64": ((72, (8, 15)), (16, (0x8901, 0x8902, 0x5412))),
    "aarch64": ((25, (8, 15)), (29, (0x8901, 0x8902, 0x5412))),
}
"""fcntl and ioctl by number, with the values of the second argument that aim signals or terminal input at others."""
_NAMESPACES = 0x7E020000
"""The flags of clone that make namespaces."""
_READABLE = (
    "/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf",
    "/etc/alternatives", "/etc/localtime", "/proc/self", "/proc/driver", "/proc/devices", "/proc/modules", "/proc/sys",
    "/proc/version", "/proc/filesystems", "/sys",
)  # fmt: skip
_OWN_THREADS = "/proc/self/task"
"""Where a GPU's driver writes the names of the threads that it starts; without that it does not start at all."""
_DEVICES = ("nvidia*", "nvidia-caps/*", "nvhost-*", "nvmap")
MOST_FILES, MOST_PROCESSES = 1024, 4096


def _filter() -> bytes:
    """Return the seccomp program, in classic BPF, for this machine and this process."""
    machine = platform.machine()
    load, equal, at_least, any_bit, ret = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, deny, missing = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    unsupported = 0x00050000 | errno.EOPNOTSUPP
    low, high = 16, 20  # offsets of the first argument's halves; every further argument is 8 bytes on
    code: list[tuple[int, int, int, int]] = [(load, 0, 0, 4), (equal, 1, 0, AUDIT_ARCH[machine]), (ret, 0, 0, 0x80000000)]
    code += [(load, 0, 0, 0), (at_least, 0, 1, 0x40000000), (ret, 0, 0, deny)]  # x86-64 has a second table of calls up there
    for number in (int(word) for word in _DENIED[machine].split()[1::2]):
        code += [(equal, 0, 1, number), (ret, 0, 0, deny)]
    for number in _OWN_ONLY[machine]:
        code += [(equal, 0, 4, number), (load, 0, 0, low), (equal, 0, 1, 0), (ret, 0, 0, allow), (ret, 0, 0, deny)]
    for number in _LOCAL_SOCKETS[machine]:
        code += [(equal, 0, 4, number), (load, 0, 0, low), (equal, 0, 1, 1), (ret, 0, 0, allow), (ret, 0, 0, deny)]
    code += [(equal, 0, 6, _SENDTO[machine]), (load, 0, 0, low + 32), (equal, 0, 3, 0), (load, 0, 0, high + 32), (equal, 0, 1, 0)]
    code += [(ret, 0, 0, allow), (ret, 0, 0, deny)]
    code += [
        (equal, 0, 4, _TGKILL[machine]),
        (load, 0, 0, low),
        (equal, 0, 1, os.getpid()),
        (ret, 0, 0, allow),
        (ret, 0, 0, deny),
    ]
    code += [(equal, 0, 4, _PRCTL[machine]), (load, 0, 0, low), (equal, 0, 1, 1), (ret, 0, 0, deny), (ret, 0, 0, allow)]
    code += [(equal, 0, 4, _CLONE[machine]), (load, 0, 0, low), (any_bit, 0, 1, _NAMESPACES), (ret, 0, 0, deny)]
    code += [(ret, 0, 0, allow), (equal, 0, 1, _CLONE3), (ret, 0, 0, missing)]  # its flags lie in memory; libraries fall back
    code += [(equal, 0, 1, _FALLOCATE[machine]), (ret, 0, 0, unsupported)]
    for number, commands in _COMMANDS[machine]:
        code += [(equal, 0, 2 * len(commands) + 2, number), (load, 0, 0, low + 8)]
        for command in commands:
            code += [(equal, 0, 1, command), (ret, 0, 0, deny)]
        code.append((ret, 0, 0, allow))
    code.append((ret, 0, 0, allow))
    return b"".join(struct.pack("HBBI", *row) for row in code)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a fenced process may take."""

    cpu_seconds: int
    memory_bytes: int
    """Memory on top of what is mapped already."""
    file_bytes: int
    """The size of one file."""


def _set_limits(limits: Limits, *, gpu: bool) -> None:
    """Set the rlimits. A GPU's driver reserves addresses without end, so that there it is writable memory that is limited."""
    kind = resource.RLIMIT_DATA if gpu else resource.RLIMIT_AS
    with open("/proc/self/statm") as statm:
        pages = statm.read().split()
    memory = int(pages[5] if gpu else pages[0]) * resource.getpagesize() + limits.memory_bytes
    seconds = max(1, limits.cpu_seconds)
    rows = (
        (resource.RLIMIT_CPU, seconds, seconds + 1), (kind, memory, memory), (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes), (resource.RLIMIT_NOFILE, MOST_FILES, MOST_FILES),
        (resource.RLIMIT_NPROC, MOST_PROCESSES, MOST_PROCESSES),
    )  # fmt: skip
    for name, soft, hard in rows:
        lower(name, soft, hard)


def _devices() -> tuple[Path, ...]:
    return tuple(path for pattern in _DEVICES for path in sorted(Path("/dev").glob(pattern)) if not path.is_dir())


def _libraries() -> tuple[Path, ...]:
    """The folders that the loader was told of, where a driver's libraries may lie."""
    named = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return tuple(Path(path) for path in named if path.startswith("/") and len(Path(path).parts) > 2)


def fence(limits: Limits, scratch: Path, *, gpu: bool) -> None:
    """Fence this process in for good. `scratch` is the one folder for writing. With `gpu`, the GPU's devices may be used. Raises
    SandboxError when a layer that the kernel offers fails."""
    _set_limits(limits, gpu=gpu)
    no_new_privileges()
    if level().landlock:
        for own in ("/proc/self", _OWN_THREADS):  # held open for ever, or the kernel may forget the rule with the entry
            os.open(own, os.O_PATH | os.O_DIRECTORY)
        readable = (*interpreter_paths(), *(Path(path) for path in _READABLE), *_libraries())
        restrict_files(readable, (scratch, Path(os.devnull), *((Path(_OWN_THREADS), *_devices()) if gpu else ())))
    if level().seccomp:
        install(_filter())


def enclose(parent: int, limits: Limits, scratch: Path, *, gpu: bool) -> None:
    """Fence in this process, which `parent` has just forked: in a group of its own, mute, with nothing in its environment but
    what Python, Triton and a GPU's driver ask for. Raises SandboxError."""
    die_with(parent)
    os.setpgid(0, 0)
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)
    kept = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH") if name in os.environ}
    own = {
        "HOME": scratch,
        "TMPDIR": scratch,
        "TRITON_CACHE_DIR": scratch / "triton",
        "TORCHINDUCTOR_CACHE_DIR": scratch / "inductor",
    }
    os.environ.clear()
    os.environ.update(kept, PATH="/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin", OMP_NUM_THREADS="1", LANG="C.UTF-8")
    os.environ.update({name: str(path) for name, path in own.items()})
    tempfile.tempdir = str(scratch)
    os.chdir(scratch)
    fence(limits, scratch, gpu=gpu)


def hide_memory() -> None:
    """Let no other process of this user read this one's memory or environment, also where there is no Landlock. Raises
    SandboxError."""
    if ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0):
        raise SandboxError(f"prctl: {os.strerror(ctypes.get_errno())}")


def adopt_orphans() -> None:
    """Become the parent of what this process's children leave behind, so that it can be waited for. Raises SandboxError."""
    if ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0):
        raise SandboxError(f"prctl: {os.strerror(ctypes.get_errno())}")
