"""What the peer servers share: a loopback socket announced on stdout, and an end when stdin ends."""

import os
import socket
import sys
import threading

import uvicorn


def serve(app):
    """Serve `app` on the loopback port given as the first argument (0 or none: any free port).

    Prints `READY PORT` once connections are accepted by the kernel. The process ends when its
    standard input ends, so a test that dies never leaves a server behind; give it a pipe.
    """
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    threading.Thread(target=_exit_with_stdin, daemon=True).start()
    print(f"READY {listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


def _exit_with_stdin():
    # The plain descriptor: the buffered stream's lock would be held at interpreter shutdown.
    while os.read(0, 4096):
        pass
    os._exit(0)
