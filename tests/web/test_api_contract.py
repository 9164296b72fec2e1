"""The OpenAPI description is true: what it allows never fails, what is answered matches it."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from app.main import create_app
from app.settings import Settings
from tests.shipped import catalogue
from tests.strict_client import StrictClient

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
schema = schemathesis.openapi.from_asgi(
    "/api/openapi.json", create_app(Settings(log_level="error"), catalogue())
)


@pytest.mark.slow
@schema.parametrize()
@settings(
    max_examples=settings().max_examples // 3,  # one example is a whole matrix at most
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_description_is_true(case: Case[Any]) -> None:
    """Generated requests are answered with a described status, type and shape."""
    case.call_and_validate(checks=list(CHECKS))


def test_only_the_api_is_described(client: StrictClient) -> None:
    """Pages for people are no part of the contract for programs."""
    paths = client.get("/api/openapi.json").json()["paths"]
    assert paths
    assert all(path.startswith("/api/v1/") for path in paths)


def test_every_input_is_described(client: StrictClient) -> None:
    """Query and body name the same inputs, but for what is too long for an address."""
    sizing = client.get("/api/openapi.json").json()["paths"]["/api/v1/sizing"]
    query = {each["name"] for each in sizing["get"]["parameters"]}
    body = sizing["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert body.keys() - query == {"hf_config", "hf_quant_config"}
    assert not query - body.keys()
    assert all(each["description"] for each in sizing["get"]["parameters"])


@pytest.mark.parametrize("path", ["sizing", "matrix", "request-mix", "models"])
def test_a_long_address_is_answered_as_described(client: StrictClient, path: str) -> None:
    """An address above the limit gets the plain 414 that the description names."""
    answer = client.get(f"/api/v1/{path}?model={'x' * 9000}")
    described = client.get("/api/openapi.json").json()["paths"][f"/api/v1/{path}"]["get"]
    assert answer.status_code == 414
    assert answer.headers["content-type"].split(";")[0] in described["responses"]["414"]["content"]
