"""Stands in for `test/service.py` of kafka-python's repository, which its sdist leaves out.

The suite is told of a broker that runs already, so nothing is started here.
"""


class ExternalService:
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def stop(self) -> None:
        pass

    def dump_logs(self) -> None:
        pass


class SpawnedService:
    def __init__(self, args: object = (), env: object = None) -> None:
        raise RuntimeError("the integration tests run against a broker that was started for them")
