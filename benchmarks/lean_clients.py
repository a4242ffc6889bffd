"""Clients that take little of the machine: plain sockets in one process; run as a program.

    python lean_clients.py COUNT BATCH SECONDS TOKEN URL NAME [URL NAME ...]

Each keeps a connection and asks and tells in turn, under idempotency keys as `sx.connect` does.
They are spread over servers and studies. Half a second at the beginning does not count. Prints
one JSON object: pairs, latencies of asking and telling in seconds, and seconds of processor time
that the clients took themselves.
"""

from __future__ import annotations

import json
import random
import re
import selectors
import socket
import sys
import time
from urllib.parse import quote, urlsplit

# Seconds before anything is counted.
WARM_UP = 0.5

MEANS = {"a": 1.0, "b": 0.5, "c": 0.4, "d": 0.95, "e": 0.8}

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
_PULL = re.compile(rb'"id": ?"([^"]+)", ?"arm": ?"([^"]+)"')


class Client:
    """One connection that asks and tells in turn."""

    def __init__(self, url: str, name: str, batch: int, token: str, number: int) -> None:
        place = urlsplit(url)
        self.socket = socket.create_connection((place.hostname, place.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        path = f"/v1/studies/{quote(name, safe='')}"
        self._rest = (
            f" HTTP/1.1\r\nHost: {place.netloc}\r\nAccept: application/json\r\n"
            f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        )
        self._paths = {"ask": f"POST {path}/pulls", "tell": f"POST {path}/rewards"}
        self._ask = f'{{"n": {batch}}}'
        self._key, self._sent = f"{random.getrandbits(64):016x}{number:04x}", 0
        self._read = b""
        self.kind, self.started = "", 0.0
        self._random = random.Random(number)
        self.ask()

    def ask(self) -> None:
        self._send("ask", self._ask)

    def tell(self, answer: bytes) -> None:
        rewards = ", ".join(
            f'{{"pull": "{pull.decode()}", '
            f'"reward": {self._random.gauss(MEANS[arm.decode()], 1.0)!r}}}'
            for pull, arm in _PULL.findall(answer)
        )
        self._send("tell", f'{{"rewards": [{rewards}]}}')

    def _send(self, kind: str, body: str) -> None:
        self._sent += 1
        self.kind = kind
        text = (
            f"{self._paths[kind]}{self._rest}Idempotency-Key: {self._key}{self._sent:08x}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        self.started = time.perf_counter()
        self.socket.sendall(text.encode())

    def answer(self) -> bytes | None:
        """The body of the answer, once it is complete."""
        part = self.socket.recv(2**20)
        if not part:
            raise ConnectionError("the server hung up")
        self._read += part
        head = self._read.find(b"\r\n\r\n")
        if head < 0:
            return None
        found = _LENGTH.search(self._read, 0, head)
        end = head + 4 + (0 if found is None else int(found[1]))
        if len(self._read) < end:
            return None
        whole, self._read = self._read[:end], self._read[end:]
        if not whole.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(whole.decode())
        return whole[head + 4 :]


def main() -> None:
    count, batch, seconds, token = (
        int(sys.argv[1]),
        int(sys.argv[2]),
        float(sys.argv[3]),
        sys.argv[4],
    )
    places = list(zip(sys.argv[5::2], sys.argv[6::2], strict=True))
    waiting = selectors.DefaultSelector()
    for i in range(count):
        client = Client(*places[i % len(places)], batch, token, i)
        waiting.register(client.socket, selectors.EVENT_READ, client)
    times: dict[str, list[float]] = {"ask": [], "tell": []}
    begin = time.perf_counter() + WARM_UP
    end = begin + seconds
    used = None
    while (now := time.perf_counter()) < end:
        if used is None and now >= begin:
            used = time.process_time()
        for key, _ in waiting.select(end - now):
            client = key.data
            answer = client.answer()
            if answer is None:
                continue
            if client.started >= begin:
                times[client.kind].append(time.perf_counter() - client.started)
            if client.kind == "ask":
                client.tell(answer)
            else:
                client.ask()
    print(
        json.dumps(
            {
                "pairs": batch * len(times["tell"]),
                "used": time.process_time() - (used or 0),
                **times,
            }
        )
    )


if __name__ == "__main__":
    main()
