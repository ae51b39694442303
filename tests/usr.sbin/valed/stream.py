# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""A host on the wire: a TCP stream with known contents.

stream.py receive ADDRESS BYTES	  accept one, and check each byte
stream.py send ADDRESS BYTES	  send it
stream.py refused ADDRESS	  succeed if a host refuses a connection there
"""

import socket
import sys
import time

PORT = 5001
CHUNK = bytes(i * 7 % 251 for i in range(251 * 400))


def receive(address, size):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, PORT), family=family) as server:
        server.settimeout(180)
        connection = server.accept()[0]
    connection.settimeout(180)
    done = 0
    while done < size:
        data = connection.recv(len(CHUNK))
        start = done % 251
        if not data or data != (CHUNK + CHUNK)[start:start + len(data)]:
            sys.exit("wrong data after %d bytes" % done)
        done += len(data)
    connection.sendall(b"all")


def connect(address):
    """The receiver may not listen yet."""
    while True:
        try:
            return socket.create_connection((address, PORT), 180)
        except ConnectionRefusedError:
            time.sleep(0.05)


def send(address, size):
    connection = connect(address)
    left = size
    while left > 0:
        start = (size - left) % 251
        data = CHUNK[start:start + left]
        connection.sendall(data)
        left -= len(data)
    if connection.recv(3) != b"all":
        sys.exit("the stream ended early")


def refused(address):
    try:
        socket.create_connection((address, PORT), 1).close()
    except ConnectionRefusedError:
        return
    sys.exit("no answer")


if sys.argv[1] == "refused":
    refused(sys.argv[2])
else:
    {"receive": receive, "send": send}[sys.argv[1]](sys.argv[2],
                                                    int(sys.argv[3]))
