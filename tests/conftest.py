"""What all tests share: one Spark session for the whole run, started by the first test that needs it."""

import pytest


@pytest.fixture(scope="session")
def spark():
    """Code under test that calls ``spark_session`` gets this one too, and leaves it running."""
    from tideover.scenarios.spark import spark_session

    with spark_session("local[2,4]", app_name="tideover tests") as session:
        yield session


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests with Spark go to one worker of pytest-xdist (``--dist loadgroup``): one session will do."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))
