"""The Docker Engine that runs the containers: what does it need before the first, and may not keep after the last?"""

from __future__ import annotations

import io
import os
import socket
import tarfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from docker.errors import NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.docker_client import DockerClient, get_docker_host

from mesh_tests.containers.owner import LABEL, is_gone, this_process

# The reaper is an image of its own, which is nowhere to be had without a registry; owners do its work.
testcontainers_config.ryuk_disabled = True

DEFAULT_HOST = "unix:///var/run/docker.sock"
IMAGE = "amqpmesh-tests"


def engine_answers() -> bool:
    """One on this machine: containers and tests share files and Unix sockets."""
    host = urlsplit(get_docker_host() or DEFAULT_HOST)
    with socket.socket(socket.AF_UNIX) as probe:
        return host.scheme == "unix" and probe.connect_ex(host.path) == 0


class Engine:
    """Made: what dead processes left there is gone, and the image is there. Closed: nothing of this process is left."""

    def __init__(self) -> None:
        self.client = DockerClient().client
        self.owner = this_process()
        self._remove(is_gone)
        self.image = f"{IMAGE}:{self.owner}"
        self.client.api.import_image_from_data(
            _links_to_usr(), repository=IMAGE, tag=self.owner, changes=[f"LABEL {LABEL}={self.owner}"]
        )

    @property
    def labels(self) -> dict[str, str]:
        return {LABEL: self.owner}

    def close(self) -> None:
        self._remove(lambda owner: owner == self.owner)
        self.client.close()

    def _remove(self, is_due: Callable[[str], bool]) -> None:
        ours = {"label": LABEL}
        for container in self.client.containers.list(all=True, filters=ours, ignore_removed=True):
            if is_due(container.labels[LABEL]):
                with suppress(NotFound):
                    container.remove(force=True)
        for network in self.client.networks.list(filters=ours):
            if is_due(network.attrs["Labels"][LABEL]):
                with suppress(NotFound):
                    network.remove()
        for image in self.client.images.list(filters=ours):
            if is_due(image.labels[LABEL]):
                with suppress(NotFound):
                    self.client.images.remove(image.id)


def _links_to_usr() -> bytes:
    """All that is in the image. Containers get the machine's own /usr."""
    with io.BytesIO() as archive:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for link in _top_level_links():
                entry = tarfile.TarInfo(link.name)
                entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(link)
                tar.addfile(entry)
        return archive.getvalue()


def _top_level_links() -> Iterator[Path]:
    """/bin, /lib, /lib64 and their like."""
    return (
        path for path in Path("/").iterdir() if path.is_symlink() and os.readlink(path).strip("/").startswith("usr/")
    )
