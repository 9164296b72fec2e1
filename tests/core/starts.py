"""A start to ask the core for: models and cards of the compared cases, flags by name."""

from app.core.engine import EngineArgs
from app.core.layout import Layout
from app.core.request import SizingRequest
from tests.core.oracle import gpus, models, releases


def asked(
    model: str = "llama-3.1-8b",
    card: str = "h100-80gb-hbm3",
    version: str = "0.33.0",
    layout: Layout | None = None,
    **args: object,
) -> SizingRequest:
    """Ask for a start."""
    given = EngineArgs()
    for flag, value in args.items():
        given = given.with_flag(flag, value)
    release, _ = releases().release_for(version)
    spec, checkpoint = models()[model]
    return SizingRequest(spec, checkpoint, gpus()[card], release, layout or Layout(), given)
