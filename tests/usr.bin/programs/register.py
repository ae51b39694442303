# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Register ports through /dev/netmap: register.py NAME[,VERSION] ...  Prints
what open(2) or ioctl(2) says of each, on a line."""

import ctypes
import errno
import os
import sys

NETMAP_API = 14
REGISTER = 1            # NETMAP_REQ_REGISTER
ALL_NIC = 1             # NR_REG_ALL_NIC

libc = ctypes.CDLL(None, use_errno=True)


class Header(ctypes.Structure):
    """struct nmreq_header"""
    _fields_ = [("version", ctypes.c_uint16), ("reqtype", ctypes.c_uint16),
                ("reserved", ctypes.c_uint32), ("name", ctypes.c_char * 64),
                ("options", ctypes.c_uint64), ("body", ctypes.c_uint64)]


class Register(ctypes.Structure):
    """struct nmreq_register"""
    _fields_ = [("offset", ctypes.c_uint64), ("memsize", ctypes.c_uint64),
                ("slots", ctypes.c_uint32 * 2), ("rings", ctypes.c_uint16 * 6),
                ("mode", ctypes.c_uint32), ("extra_bufs", ctypes.c_uint32),
                ("flags", ctypes.c_uint64)]


# _IOWR('i', 151, struct nmreq_header)
NIOCCTRL = 3 << 30 | ctypes.sizeof(Header) << 16 | ord("i") << 8 | 151


def register(name, version):
    fd = libc.open(b"/dev/netmap", os.O_RDWR)
    if fd == -1:
        return "open: " + errno.errorcode[ctypes.get_errno()]
    body = Register(mode=ALL_NIC)
    header = Header(version=version, reqtype=REGISTER, name=name.encode(),
                    body=ctypes.addressof(body))
    if libc.ioctl(fd, ctypes.c_ulong(NIOCCTRL), ctypes.byref(header)) == -1:
        return errno.errorcode[ctypes.get_errno()]
    return "%d slots" % body.slots[0]


for arg in sys.argv[1:]:
    name, _, version = arg.partition(",")
    print(register(name, int(version or NETMAP_API)))
