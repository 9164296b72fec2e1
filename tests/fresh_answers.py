"""A pytest plugin for mutmut: every test begins without what the calculation remembers.

mutmut runs all tests in one process and forks a child of it for each mutant. A remembered answer
would hide which tests reach a function, and would stand in for a mutant that then never runs.
"""

import sys

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget every answer."""
    for name, module in list(sys.modules.items()):
        if name.startswith("app.core."):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
