"""A standalone cluster of Spark: a master and two workers, each a process of its own, all on the loopback address."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyspark

from mesh_tests.ports import free_port
from mesh_tests.programs import Program

HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
START_S = 60.0
WORKERS = ("w1", "w2")
SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
ONLY_WHAT_IS_SENT = """
import importlib.machinery, sys

OURS = ("addressing", "wire", "recording", "router", "broker", "linklogs", "mesh")


class OnlyWhatIsSent:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in OURS:
            return None
        sent = [each for each in sys.path if "linklogs.zip" in each]
        spec = importlib.machinery.PathFinder.find_spec(name, path or sent)
        if spec is None or "linklogs.zip" not in spec.origin:
            raise ImportError(f"{name} did not come with the job")
        return spec


sys.meta_path.insert(0, OnlyWhatIsSent)
"""
"""Python of executors runs this first: the machine of a test has amqpmesh, a machine of a cluster has not."""
DRIVER = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SMALL,
    # Each exchange would have 200 tasks for a few rows each: minutes of every test.
    "spark.sql.shuffle.partitions": "2",
}


class Cluster:
    """Started in ``directory``; whoever makes one stops it, however that ends."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.url = f"spark://{LOOPBACK}:{free_port()}"
        self.environment = {
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": SMALL,
            "SPARK_LOCAL_DIRS": str(directory / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
        }
        self._programs: list[Program] = []

    def start(self) -> None:
        site = self._directory / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(ONLY_WHAT_IS_SENT)
        port = self.url.rpartition(":")[2]
        master = self._begin("master", "master.Master", "--port", port)
        master.wait_for("New state: ALIVE", START_S)
        for name in WORKERS:
            own = ("--cores", "1", "--memory", "512m", "--work-dir", str(self._directory / name))
            self._begin(name, "worker.Worker", *own, self.url)
        for worker in self._programs[1:]:
            worker.wait_for("Successfully registered with master", START_S)

    def stop(self) -> None:
        for program in reversed(self._programs):
            program.stop()

    def executors(self) -> list[int]:
        """How many each worker was asked for, ever."""
        return [len(re.findall("Asked to launch executor", each.output())) for each in self._programs[1:]]

    def _begin(self, name: str, daemon: str, *arguments: str) -> Program:
        common = (f"org.apache.spark.deploy.{daemon}", "--host", LOOPBACK, "--webui-port", "0")
        command = (str(HOME / "bin" / "spark-class"), *common, *arguments)
        environment = {**self.environment, "PYTHONPATH": str(self._directory / "site")}
        self._programs.append(Program(name, command, self._directory, environment))
        return self._programs[-1]
