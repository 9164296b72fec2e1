"""Wiring: settings, middleware in their order, routes. No logic."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

from app.catalog.accuracy import load_accuracy
from app.catalog.catalogue import Catalogue, load_catalogue
from app.settings import Settings
from app.telemetry.logging import configure
from app.telemetry.metrics import Metrics
from app.web import errors
from app.web.assets import MOUNT, Assets
from app.web.kept_pages import KEPT_PAGES, KeptPages
from app.web.observe import Observe
from app.web.quote_links import make_office
from app.web.render import Renderer
from app.web.routes import (
    accuracy,
    api,
    compare,
    config,
    desk,
    desk_login,
    embed,
    entrance,
    health,
    kept_quote,
    matrix,
    need,
    pages,
    quote,
    readings,
    readings_api,
    releases,
    result,
    wizard,
)
from app.web.security import CrossSiteGuard, SecurityHeaders, SizeLimits
from app.web.view_models.matrix_tables import MatrixTables
from app.web.view_models.need_view import NeedViews
from app.web.view_models.result_view import ResultViews

ROOT: Final = Path(__file__).resolve().parents[1]
ROUTERS: Final = (
    entrance.router,
    health.router,
    pages.router,
    wizard.router,
    result.router,
    releases.router,
    accuracy.router,
    config.router,
    matrix.router,
    need.router,
    compare.router,
    quote.router,
    kept_quote.router,
    desk_login.router,
    desk.router,
    readings.router,
    embed.router,
    api.router,
    readings_api.router,
)


def create_app(settings: Settings | None = None, catalogue: Catalogue | None = None) -> FastAPI:
    """Return the application; `uvicorn --factory app.main:create_app` starts it.

    Args:
        settings: defaults to the SIZING_ environment variables.
        catalogue: defaults to what is read from `data/`, which raises CatalogueError if a file of
            it is wrong.
    """
    settings = settings or Settings()
    configure(production=settings.production, level=settings.log_level)
    catalogue = catalogue or load_catalogue(ROOT / "data", settings.vendor)
    metrics = Metrics()
    refuse = errors.error_response
    app = FastAPI(
        title="vLLM sizing",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        telemetry={"tracing": False},
        lifespan=_opened,
        # the first sees the request first and the answer last
        middleware=[
            Middleware(SecurityHeaders, frame_ancestors=settings.frame_ancestors),
            Middleware(Observe, metrics=metrics, refuse=refuse, production=settings.production),
            Middleware(SizeLimits, refuse=refuse),
            Middleware(CrossSiteGuard, base_url=settings.base_url, refuse=refuse),
            Middleware(GZipMiddleware, minimum_size=500, compresslevel=6),
        ],
    )
    _fill_state(app, settings, catalogue, metrics)
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    app.mount(MOUNT, app.state.assets, name="static")
    return app


@asynccontextmanager
async def _opened(app: FastAPI) -> AsyncIterator[None]:
    """Run beside the office; in production nobody's first page waits for templates."""
    settings: Settings = app.state.settings
    if settings.production:
        app.state.renderer.compile_templates()
        # what is loaded stays: the collector need not look through it again and again
        gc.freeze()
    async with app.state.office.open():
        yield


def _fill_state(app: FastAPI, settings: Settings, catalogue: Catalogue, metrics: Metrics) -> None:
    """Load and make what the pages read, once for each application."""
    assets = Assets(ROOT / "static", watch=not settings.production)
    app.state.settings = settings
    app.state.metrics = metrics
    app.state.assets = assets
    app.state.catalogue = catalogue
    app.state.accuracy = load_accuracy(ROOT / "data" / "measurements" / "accuracy.json")
    app.state.result_views = ResultViews(catalogue)
    app.state.matrix_tables = MatrixTables(catalogue)
    app.state.need_views = NeedViews(catalogue)
    renderer = Renderer(
        templates=ROOT / "templates",
        translations=ROOT / "app" / "i18n",
        assets=assets,
        url_path_for=app.url_path_for,
        data_version=catalogue.data_version,
        reload=not settings.production,
    )
    app.state.renderer = renderer
    app.state.kept_pages = KeptPages(KEPT_PAGES if settings.production else 0)
    app.state.office = make_office(settings, catalogue.vendor, metrics, renderer)
