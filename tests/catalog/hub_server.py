"""A server on loopback that speaks the hub's paths, well and badly."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2048,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 32_000,
    "max_position_embeddings": 8192,
}
QUANTIZATION = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
INDEX = {"metadata": {"total_size": 123_456_789}, "weight_map": {"x": "y" * 200_000}}
FILES = ("config.json", "hf_quant_config.json", "model.safetensors.index.json")


class HubHandler(BaseHTTPRequestHandler):
    """Answers by the model's name: `good`, `gated`, `huge`, `slow`, `broken` and so on."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        """Answer one request."""
        self.asked.append(self.path)
        parts = self.path.strip("/").split("/")
        name = parts[3] if parts[0] == "api" else parts[1]
        answer = getattr(self, f"_{name}", None)
        if answer is None:
            self._send(404, b"{}")
        else:
            answer(parts)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""

    def _good(self, parts: list[str]) -> None:
        contents = dict(zip(FILES, (CONFIG, QUANTIZATION, INDEX), strict=True))
        if parts[0] == "api":
            siblings = [{"rfilename": name} for name in FILES]
            self._json({"sha": COMMIT, "siblings": siblings})
        else:
            self._json(contents[parts[-1]])

    def _plain(self, parts: list[str]) -> None:
        if parts[0] == "api":
            self._json({"sha": COMMIT, "siblings": [{"rfilename": "config.json"}]})
        else:
            self._json(CONFIG)

    def _moved(self, parts: list[str]) -> None:
        if parts[0] == "api":
            self._json({"sha": COMMIT, "siblings": []})
        elif "elsewhere" not in self.path:
            self._redirect(f"/acme/moved/elsewhere/{COMMIT}/config.json")
        else:
            self._json(CONFIG)

    def _circle(self, _: list[str]) -> None:
        self._redirect(self.path)

    def _foreign(self, _: list[str]) -> None:
        self._redirect("http://169.254.169.254/latest/meta-data/")

    def _gated(self, _: list[str]) -> None:
        self._send(403, b'{"error": "gated"}')

    def _busy(self, _: list[str]) -> None:
        self._send(429, b"")

    def _broken(self, parts: list[str]) -> None:
        if parts[0] == "api":
            self._json({"sha": COMMIT, "siblings": None})
        else:
            self._send(200, b'{"architectures": [')

    def _nested(self, parts: list[str]) -> None:
        if parts[0] == "api":
            self._json({"sha": COMMIT, "siblings": []})
        else:
            self._send(200, b"[" * 200_000)

    def _nocommit(self, _: list[str]) -> None:
        self._json({"sha": "main", "siblings": []})

    def _huge(self, _: list[str]) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _chunk in range(200):
                self.wfile.write(b" " * 65_536)
        except OSError:
            self.close_connection = True
        self.close_connection = True

    def _slow(self, _: list[str]) -> None:
        time.sleep(1.0)
        self._json({"sha": COMMIT})

    def _dripping(self, _: list[str]) -> None:
        self.send_response(200)
        self.end_headers()
        try:
            for _drop in range(30):
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(0.1)
        except OSError:
            pass
        self.close_connection = True

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode())

    def _redirect(self, location: str) -> None:
        self.send_response(307)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            self.wfile.write(content)
        except OSError:
            self.close_connection = True


@contextmanager
def running_hub() -> Iterator[str]:
    """Run the server on a free port of loopback; gives its address."""
    HubHandler.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), HubHandler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=5)
