"""Pages of pasted logs, and two logs to paste."""

from app.web.locale import Language
from app.web.render import Renderer
from tests.readings.logs import start_log
from tests.readings.servers import Server
from tests.strict_client import StrictClient, parse_strictly

LLAMA = Server("known", "meta-llama/Llama-3.1-8B-Instruct", 32, 8, 128, 14.99, 44.39, 43.9, 32_768)
KNOWN = start_log("0.25.1", LLAMA).text + "\nGPU 0: NVIDIA L40S\n"


def paste(client: StrictClient, text: str, language: str = "en", **more: str) -> str:
    """The page for a pasted log."""
    answer = client.post(f"/{language}/log", data={"log": text, **more}, files={"log_file": b""})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    return answer.text


def words(html: str) -> str:
    """The text of a page on one line."""
    tree = parse_strictly(html)
    return " ".join("".join(tree.itertext()).split())


def rendered(
    client: StrictClient, language: Language, template: str, macro: str, *values: object
) -> str:
    """What a macro makes of its values."""
    renderer: Renderer = client.served.state.renderer
    module = renderer.environments[language].get_template(template).module
    return " ".join(str(getattr(module, macro)(*values)).split())
