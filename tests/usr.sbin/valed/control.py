# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A client of the control socket, packet by packet: vale_wire.h."""

import array
import os
import socket
import struct

from wait_until import WAIT_S

MAGIC, API, HEAD = 0x76616c33, 14, 224
REGISTER, LIST = 1, 5
ALL_NIC, MONITOR_TX = 1, 0x100


class Control:
    """A connection to `control' in the current directory."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(WAIT_S)
        self.sock.connect("control")

    def close(self):
        self.sock.close()

    def send(self, request=LIST, name="", body=bytes(8), fds=()):
        self.sock.sendmsg(
            [struct.pack("=Ii128sHHI64sQQ", MAGIC, 0, b"", API, request, 0,
                         name.encode(), 0, 0) + body],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
            if fds else [])

    def reply(self):
        """Return the errno, and why; descriptors are closed."""
        data, fds, _, _ = socket.recv_fds(self.sock, 65536, 64)
        for fd in fds:
            os.close(fd)
        if not data:
            raise ConnectionResetError
        error, why = struct.unpack_from("=i128s", data, 4)
        return error, why.split(b"\0")[0].decode()

    def list(self):
        """Ask for a port.  Returns false if valed closes the connection."""
        try:
            self.send()
            self.reply()
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def register(self, name, flags=0):
        """Open a port, or try to; see reply()."""
        self.send(REGISTER, name, struct.pack(
            "=QQIIHHHHHHII4xQ", 0, 0, 16, 16, 0, 0, 0, 0, 0, 0, ALL_NIC, 0,
            flags))
        return self.reply()
