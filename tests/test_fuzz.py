"""Requests that nobody would write, made from the OpenAPI document."""

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

import simplexplore as sx
from nightly import NIGHTLY
from servers import Thread
from workers import star

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_no_request_makes_the_service_fail(sqlite_url):
    """Every documented path, with requests that fit the document and such that do not."""
    study = sx.Study.create(sqlite_url, "0", star(delta=0.1))
    study.ask()
    seen = set()
    with Thread(sqlite_url) as running:
        schema = schemathesis.openapi.from_url(f"{running.url}/v1/openapi.json")
        # A stream has no end; test_service_events.py tests it.
        operations = [one.ok() for one in schema.get_all_operations()]
        operations = [one for one in operations if not one.path.endswith("/events")]
        assert len(operations) >= 20
        for operation in operations:
            for mode in (
                schemathesis.GenerationMode.POSITIVE,
                schemathesis.GenerationMode.NEGATIVE,
            ):

                @settings(
                    max_examples=50 if NIGHTLY else 3,
                    database=None,
                    phases=[Phase.explicit, Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )
                @given(case=operation.as_strategy(generation_mode=mode))
                def check(case):
                    if case.path_parameters.get("name"):
                        case.path_parameters["name"] = "0"  # so that it leads somewhere
                    response = case.call(timeout=60)
                    seen.add((case.method, response.status_code))
                    case.validate_response(response, checks=CHECKS)

                check()
    assert {("GET", 200), ("POST", 200), ("POST", 204), ("POST", 422)} <= seen
    assert study.verify()
