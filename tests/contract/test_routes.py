"""Addresses are promises: links in mails and on other sites must keep working."""

from fastapi.routing import APIRoute

from app.main import ROOT, ROUTERS

GOLDEN = ROOT / "tests" / "contract" / "routes.txt"


def test_routes_are_the_golden_list() -> None:
    """Every address of tests/contract/routes.txt is still there, and every new one is listed."""
    routes = [route for router in ROUTERS for route in router.routes]
    found = sorted(
        f"{route.path} {','.join(sorted(route.methods or ()))}"
        for route in routes
        if isinstance(route, APIRoute)
    )
    assert len(found) == len(routes), "a route that is no APIRoute would escape this list"
    assert found == GOLDEN.read_text(encoding="utf-8").splitlines()
