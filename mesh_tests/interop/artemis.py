"""An ActiveMQ Artemis on a loopback port and in a directory of its own."""

import shutil
import subprocess
from pathlib import Path

from mesh_tests.installed import PEERS
from mesh_tests.ports import free_port
from mesh_tests.programs import Program

HOME = PEERS / "artemis"
START_S = 60.0
JAVA_ARGS = "-Xms64M -Xmx256M -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dlog4j2.disableJmx=true"


# Artemis makes a multicast address for a link that does not say "queue" among its terminus' capabilities, except here.
ANYCAST = """<address-settings>
         <address-setting match="queue.#">
            <default-address-routing-type>ANYCAST</default-address-routing-type>
            <default-queue-routing-type>ANYCAST</default-queue-routing-type>
         </address-setting>"""


class Artemis:
    """Addresses are plain names, ``queue.*`` for queues; user and password are admin and secret, or nothing at all."""

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._instance = directory / "instance"
        self._create()
        self._server = self._start()

    @staticmethod
    def is_installed() -> bool:
        return (HOME / "bin" / "artemis").exists() and shutil.which("java") is not None

    @property
    def url(self) -> str:
        return f"amqp://admin:secret@127.0.0.1:{self.port}"

    @property
    def anonymous_url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    def make_durable_queue(self, name: str) -> None:
        """All queues are, and are made when somebody attaches."""

    def stop(self) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self._server = self._start()

    def _create(self) -> None:
        settings = f"--host 127.0.0.1 --default-port {self.port} --user admin --password secret --allow-anonymous"
        without = (
            "--no-web --no-autotune --no-amqp-acceptor --no-hornetq-acceptor --no-mqtt-acceptor --no-stomp-acceptor"
        )
        subprocess.run(
            [
                HOME / "bin" / "artemis",
                "create",
                self._instance,
                *settings.split(),
                *without.split(),
                "--nio",
                "--silent",
            ],
            check=True,
            capture_output=True,
            timeout=START_S,
        )
        configuration = self._instance / "etc" / "broker.xml"
        configuration.write_text(configuration.read_text().replace("<address-settings>", ANYCAST))

    def _start(self) -> Program:
        command = [str(self._instance / "bin" / "artemis"), "run"]
        server = Program("artemis", command, self._instance, {"JAVA_ARGS": JAVA_ARGS})
        try:
            server.wait_for("AMQ221007", START_S)  # Server is now active
        except AssertionError:
            server.stop()
            raise
        return server
