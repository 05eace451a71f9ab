"""The Linux system calls and network settings that a lab needs.

Python has `os.unshare` and `os.setns` only since 3.12, and no `mount` or `prctl` at all.
"""

import ctypes
import fcntl
import os
import socket
import struct

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
PR_SET_TIMERSLACK = 29

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_SIOCSIFADDR, _SIOCSIFNETMASK = 0x8916, 0x891C
_SIOCSIFMTU, _SIOCSIFTXQLEN = 0x8922, 0x8943

_RTM_NEWQDISC = 36
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_REPLACE, _NLM_F_CREATE = 0x1, 0x4, 0x100, 0x400
_NLMSG_ERROR = 2
_TC_H_ROOT = 0xFFFFFFFF
_TCA_KIND, _TCA_OPTIONS = 1, 2
_TCA_TBF_PARMS, _TCA_TBF_BURST = 1, 6
_LINK_LAYER_ETHERNET = 1  # count the bytes of a packet as they are

_RTM_NEWROUTE = 24
_RT_TABLE_MAIN, _RTPROT_KERNEL, _RT_SCOPE_LINK, _RTN_UNICAST = 254, 2, 253, 1
_RTA_DST, _RTA_OIF, _RTA_PREFSRC, _RTA_METRICS = 1, 4, 7, 8
_RTAX_INITCWND, _RTAX_INITRWND = 11, 14

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, call: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), call)


def unshare(kinds: int) -> None:
    """Move this process into new namespaces of these kinds (CLONE_NEW…)."""
    _check(_libc.unshare(kinds), "unshare")


def setns(descriptor: int) -> None:
    """Move this process into the namespace of an open descriptor."""
    _check(_libc.setns(descriptor, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """Mount a file system.  kind: its type.   flags: MS_….   data: options of that type."""
    texts = [text.encode() or None for text in (source, target, kind, data)]
    result = _libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3])
    _check(result, f"mount {source} on {target}")


def prctl(option: int, value: int | bytes) -> None:
    """Set an attribute (PR_SET_…) of this process or thread."""
    argument = value if isinstance(value, bytes) else ctypes.c_ulong(value)
    _check(_libc.prctl(option, argument, 0, 0, 0), "prctl")


def open_tun(name: str) -> int:
    """Make a TUN device in this network namespace; it lives as long as the descriptor is open."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    request = struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI)
    fcntl.ioctl(descriptor, _TUNSETIFF, request)
    return descriptor


def configure(
    device: str, address: str, netmask: str, *, mtu: int | None = None, queue: int | None = None
) -> None:
    """Give a device of this network namespace its address, and bring it up.

    mtu: bytes of the largest packet.   queue: how many packets may wait in the device.  None
    leaves a value as it is.
    """
    name = device.encode()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for code, number in ((_SIOCSIFMTU, mtu), (_SIOCSIFTXQLEN, queue)):
            if number is not None:
                fcntl.ioctl(control, code, struct.pack("16si20x", name, number))
        for code, text in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, netmask)):
            inet = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(text))
            fcntl.ioctl(control, code, struct.pack("16s16s8x", name, inet))
        answer = fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack("16sH22x", name, 0))
        (flags,) = struct.unpack_from("H", answer, 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name, flags | _IFF_UP))


def add_token_bucket(device: str, rate: int, burst: int) -> None:
    """Limit what a device lets out by a token bucket filter (`tc qdisc replace … tbf`).

    rate: bits per second.   burst: the bucket's size in bytes.
    Packets then wait where TCP sees them, as behind a real network card.
    """
    parameters = struct.pack("BBHhHI", 0, _LINK_LAYER_ETHERNET, 0, 0, 0, rate // 8)
    parameters += bytes(12) + struct.pack("III", 1 << 27, 0, 0)
    options = _attribute(_TCA_TBF_PARMS, parameters)
    options += _attribute(_TCA_TBF_BURST, struct.pack("I", burst))
    body = struct.pack("BxxxiIII", 0, socket.if_nametoindex(device), 0, _TC_H_ROOT, 0)
    body += _attribute(_TCA_KIND, b"tbf\0") + _attribute(_TCA_OPTIONS, options)
    _send_netlink(_RTM_NEWQDISC, body, f"tbf on {device}")


def set_initial_windows(device: str, address: str, netmask: str, packets: int) -> None:
    """Let TCP send and take `packets` packets on a new connection (`ip route … initcwnd initrwnd`).

    address, netmask: the device's.  The route from the device to its own network is replaced.
    """
    local, mask = socket.inet_aton(address), socket.inet_aton(netmask)
    network = bytes(a & m for a, m in zip(local, mask, strict=True))
    length = int.from_bytes(mask, "big").bit_count()
    metrics = b"".join(
        _attribute(kind, struct.pack("I", packets)) for kind in (_RTAX_INITCWND, _RTAX_INITRWND)
    )
    body = struct.pack(
        *("BBBBBBBBI", socket.AF_INET, length, 0, 0, _RT_TABLE_MAIN),
        *(_RTPROT_KERNEL, _RT_SCOPE_LINK, _RTN_UNICAST, 0),
    )
    body += _attribute(_RTA_DST, network) + _attribute(_RTA_PREFSRC, local)
    body += _attribute(_RTA_OIF, struct.pack("I", socket.if_nametoindex(device)))
    body += _attribute(_RTA_METRICS, metrics)
    _send_netlink(_RTM_NEWROUTE, body, f"route of {device}")


def _send_netlink(kind: int, body: bytes, what: str) -> None:
    """Make or replace a kernel object.  Raises OSError, which names `what`, if the kernel refuses.

    kind, body: the type (_RTM_NEW…) and the content of the netlink message.
    """
    flags = _NLM_F_REQUEST | _NLM_F_ACK | _NLM_F_REPLACE | _NLM_F_CREATE
    message = struct.pack("IHHII", 16 + len(body), kind, flags, 1, 0) + body
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(message)
        answer = link.recv(4096)
    answered, code = struct.unpack_from("4xH10xi", answer)
    if answered == _NLMSG_ERROR and code:
        raise OSError(-code, os.strerror(-code), what)


def _attribute(kind: int, content: bytes) -> bytes:
    """A netlink attribute, padded to four bytes."""
    return struct.pack("HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)
