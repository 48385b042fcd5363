"""A RabbitMQ of Debian with its AMQP 1.0 plugin, on loopback ports and in a directory of its own."""

from pathlib import Path

from proton import Terminus
from proton.reactor import SenderOption
from proton.utils import BlockingConnection

from mesh_tests.ports import free_port, is_listening
from mesh_tests.programs import Program
from mesh_tests.waiting import wait_until

SCRIPTS = Path("/usr/lib/rabbitmq/bin")  # not /usr/sbin: those change to the user rabbitmq
START_S = 60.0


class DurableTarget(SenderOption):
    def apply(self, sender) -> None:
        sender.target.durability = Terminus.DELIVERIES


class RabbitMQ:
    """Addresses are ``/queue/NAME``, ``/amq/queue/NAME`` for one that exists, and ``/topic/KEY``.

    User and password are guest, or nothing at all.
    """

    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self._epmd_port = free_port()
        self._directory = directory
        self._env = self._environment()
        self._epmd = Program("epmd", ["epmd", "-address", "127.0.0.1", "-port", str(self._epmd_port)], directory)
        self._server = self._start()

    @staticmethod
    def is_installed() -> bool:
        return (SCRIPTS / "rabbitmq-server").exists()

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    @property
    def anonymous_url(self) -> str:
        return f"amqp://127.0.0.1:{self.port}"

    def make_durable_queue(self, name: str) -> None:
        """A queue made by who merely attaches to ``/queue/NAME`` goes with the broker, messages and all."""
        connection = BlockingConnection(self.url)
        connection.create_sender(f"/queue/{name}", options=DurableTarget())
        connection.close()

    def stop(self) -> None:
        self._server.stop()
        self._epmd.stop()

    def kill(self) -> None:
        self._server.kill()

    def restart(self) -> None:
        self._server = self._start()

    def _start(self) -> Program:
        wait_until(lambda: is_listening(self._epmd_port), START_S, "epmd to listen")
        server = Program("rabbitmq", [str(SCRIPTS / "rabbitmq-server")], self._directory, self._env)
        try:
            server.wait_for("completed with", START_S)
        except AssertionError:
            server.stop()
            raise
        return server

    def _environment(self) -> dict[str, str]:
        here = self._directory
        (here / "plugins").write_text("[rabbitmq_amqp1_0].\n")
        (here / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\nlog.console = true\namqp1_0.default_user = guest\n"
        )
        return {
            "HOME": str(here),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"amqpmesh-{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_CONFIG_FILE": str(here / "rabbitmq.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(here / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(here / "data"),
            "RABBITMQ_LOG_BASE": str(here / "log"),
            "RABBITMQ_PID_FILE": str(here / "pid"),
            # One scheduler that sleeps when idle: this machine has other work.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none +sbwtdcpu none +sbwtdio none",
        }
