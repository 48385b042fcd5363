from __future__ import annotations

import shutil
import ssl
import stat
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import pkcs12

from mesh.certs import (
    CertsError,
    NodeRequest,
    ensure_operator,
    ensure_pki,
    export_pem,
    export_pkcs12,
    issue_client,
    issue_operator,
    list_certificates,
    renew,
)
from wire.transport.tls import MeshIdentity, Role

NOW = datetime(2026, 1, 1, tzinfo=UTC)
R1 = NodeRequest("r1", Role.ROUTER, ("127.0.0.1", "mesh.example"))
B1 = NodeRequest("b1", Role.BROKER)


def fingerprints(folder: Path) -> list[str]:
    return [certificate.fingerprint for certificate in list_certificates(folder)]


def test_the_first_call_makes_a_ca_and_a_certificate_for_each_node(tmp_path: Path) -> None:
    r1, b1 = ensure_pki(tmp_path / "pki", "line-3", [R1, B1], now=NOW)
    assert r1.identity == MeshIdentity("line-3", Role.ROUTER, "r1")
    assert b1.identity == MeshIdentity("line-3", Role.BROKER, "b1")
    assert set(r1.hosts) == {"127.0.0.1", "mesh.example", "localhost", "::1"}
    assert r1.not_after == NOW + timedelta(days=365)
    ca = list_certificates(tmp_path / "pki")[0]
    assert (ca.role, ca.name, ca.not_after) == ("ca", "line-3 mesh CA", NOW + timedelta(days=3650))


def test_keys_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    ensure_pki(folder, "m", [R1], now=NOW)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    keys = list(folder.rglob("*-key.pem"))
    assert len(keys) == 2
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [R1, B1], now=NOW)
    before = fingerprints(tmp_path)
    ensure_pki(tmp_path, "m", [R1, B1], now=NOW + timedelta(days=300))
    assert fingerprints(tmp_path) == before


def test_a_certificate_with_less_than_30_days_is_renewed(tmp_path: Path) -> None:
    (old,) = ensure_pki(tmp_path, "m", [R1], now=NOW)
    later = NOW + timedelta(days=336)
    (new,) = ensure_pki(tmp_path, "m", [R1], now=later)
    assert new.fingerprint != old.fingerprint
    assert new.not_after == later + timedelta(days=365)
    assert new.hosts == old.hosts


def test_a_host_that_the_certificate_lacks_renews_it(tmp_path: Path) -> None:
    (old,) = ensure_pki(tmp_path, "m", [R1], now=NOW)
    (new,) = ensure_pki(tmp_path, "m", [NodeRequest("r1", Role.ROUTER, ("10.0.0.7",))], now=NOW)
    assert new.fingerprint != old.fingerprint
    assert "10.0.0.7" in new.hosts


def test_a_listener_on_every_address_gets_the_machines_name(tmp_path: Path) -> None:
    request = NodeRequest("r1", Role.ROUTER, ("0.0.0.0",))
    (made,) = ensure_pki(tmp_path, "m", [request], now=NOW)
    assert len(made.hosts) == 4
    (same,) = ensure_pki(tmp_path, "m", [request], now=NOW)
    assert same.fingerprint == made.fingerprint


def test_an_old_ca_gets_a_new_certificate_that_old_leaves_still_verify_under(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [R1], now=NOW)
    late = NOW + timedelta(days=3300)
    (leaf,) = ensure_pki(tmp_path, "m", [R1], now=late)
    ca = list_certificates(tmp_path)[0]
    assert ca.not_after == late + timedelta(days=3650)
    assert leaf.not_after == late + timedelta(days=365)


def test_a_key_that_does_not_fit_its_certificate_is_made_again(tmp_path: Path) -> None:
    r1, b1 = ensure_pki(tmp_path, "m", [R1, B1], now=NOW)
    r1.key_path.write_bytes(b1.key_path.read_bytes())
    (again,) = ensure_pki(tmp_path, "m", [R1], now=NOW)
    assert again.fingerprint != r1.fingerprint
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(again.path, again.key_path)


def test_a_certificate_of_another_ca_is_made_again(tmp_path: Path) -> None:
    (old,) = ensure_pki(tmp_path / "one", "m", [R1], now=NOW)
    ensure_pki(tmp_path / "other", "m", [], now=NOW)
    for name in ("ca.pem", "ca-key.pem"):
        shutil.copy(tmp_path / "other" / name, tmp_path / "one" / name)
    (new,) = ensure_pki(tmp_path / "one", "m", [R1], now=NOW)
    assert new.fingerprint != old.fingerprint


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.pem")}


ALL = ("ca.pem", "ca-key.pem", "router/r1.pem", "router/r1-key.pem", "operator/operator.pem")


@pytest.mark.parametrize("copied", [some for n in range(1, len(ALL) + 1) for some in combinations(ALL, n)])
def test_no_set_of_copied_files_ever_leads_to_another_authority(tmp_path: Path, copied: tuple[str, ...]) -> None:
    """Whatever was copied, and forgotten: what is made is of the authority that was there, or nothing is."""
    home, away = tmp_path / "home", tmp_path / "away"
    ensure_pki(home, "m", [R1], now=NOW)
    ensure_operator(home, now=NOW)
    authority = x509.load_pem_x509_certificate((home / "ca.pem").read_bytes())
    for name in copied:
        (away / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(home / name, away / name)
    before = contents(away)
    is_enough = "ca-key.pem" in copied or {"ca.pem", "router/r1.pem", "router/r1-key.pem"} <= set(copied)
    if not is_enough:
        with pytest.raises(CertsError, match=r"ca-key\.pem|ca\.pem is missing"):
            ensure_pki(away, "m", [R1], now=NOW)
        assert contents(away) == before
    else:
        (made,) = ensure_pki(away, "m", [R1], now=NOW)
        x509.load_pem_x509_certificate(made.path.read_bytes()).verify_directly_issued_by(authority)


def test_a_machine_without_the_key_of_the_authority_goes_on_with_what_it_has(tmp_path: Path) -> None:
    (made,) = ensure_pki(tmp_path, "m", [R1], now=NOW)
    (tmp_path / "ca-key.pem").unlink()
    assert ensure_pki(tmp_path, "m", [R1], now=NOW) == [made]
    assert [one.role for one in list_certificates(tmp_path)] == ["ca", "router"]
    with pytest.raises(CertsError, match=r"certificate of 'b1' cannot be made here.*ca-key\.pem"):
        ensure_pki(tmp_path, "m", [R1, B1], now=NOW)


def test_without_the_key_of_the_authority_a_certificate_is_used_to_its_end(tmp_path: Path) -> None:
    (made,) = ensure_pki(tmp_path, "m", [R1], now=NOW)
    (tmp_path / "ca-key.pem").unlink()
    assert ensure_pki(tmp_path, "m", [R1], now=made.not_after - timedelta(seconds=1)) == [made]
    with pytest.raises(CertsError, match=r"certificate of 'r1' cannot be made here.*ca-key\.pem"):
        ensure_pki(tmp_path, "m", [R1], now=made.not_after)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [R1], now=NOW)
    (tmp_path / "ca.pem").write_text("what?")
    with pytest.raises(CertsError, match=r"ca\.pem or .* is damaged"):
        ensure_pki(tmp_path, "m", [R1], now=NOW)


def test_the_ca_of_another_mesh_is_not_taken(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [R1], now=NOW)
    with pytest.raises(CertsError, match="another mesh"):
        ensure_pki(tmp_path, "n", [R1], now=NOW)


def _start(folder: Path) -> list[str]:
    return [certificate.fingerprint for certificate in ensure_pki(folder, "m", [R1, B1], now=NOW)]


def test_processes_that_start_together_agree(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(_start, [tmp_path / "pki"] * 8))
    assert all(other == found[0] for other in found)


def test_clients_and_operators_are_issued_once(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [], now=NOW)
    alice = issue_client(tmp_path, "alice", now=NOW)
    assert alice.identity == MeshIdentity("m", Role.CLIENT, "alice")
    assert issue_operator(tmp_path, "olga", now=NOW).role == "operator"
    with pytest.raises(CertsError, match="client 'alice' has a certificate already"):
        issue_client(tmp_path, "alice", now=NOW)
    assert ensure_operator(tmp_path, "olga", now=NOW).role == "operator"


def test_renew_makes_a_new_key_for_the_same_identity(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [R1], now=NOW)
    alice = issue_client(tmp_path, "alice", now=NOW)
    (new,) = renew(tmp_path, "alice", now=NOW)
    assert (new.identity, new.path) == (alice.identity, alice.path)
    assert new.fingerprint != alice.fingerprint
    assert [certificate.name for certificate in renew(tmp_path, now=NOW)] == ["r1", "alice"]
    with pytest.raises(CertsError, match="no certificate of 'bob'"):
        renew(tmp_path, "bob", now=NOW)


def test_without_a_ca_nothing_is_issued(tmp_path: Path) -> None:
    with pytest.raises(CertsError, match="no mesh CA"):
        issue_client(tmp_path, "alice", now=NOW)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 65, "a\nb"])
def test_a_name_that_cannot_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    ensure_pki(tmp_path, "m", [], now=NOW)
    with pytest.raises(CertsError):
        issue_client(tmp_path, name, now=NOW)


def test_names_outside_of_ascii_survive(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "Möbius/1", [], now=NOW)
    assert issue_client(tmp_path, "zoë", now=NOW).identity == MeshIdentity("Möbius/1", Role.CLIENT, "zoë")


def test_a_bad_host_is_named(tmp_path: Path) -> None:
    with pytest.raises(CertsError, match="not a valid IP address or host name"):
        ensure_pki(tmp_path, "m", [NodeRequest("r1", Role.ROUTER, ("x" * 70,))], now=NOW)


def test_exports_hold_certificate_key_and_ca(tmp_path: Path) -> None:
    ensure_pki(tmp_path, "m", [], now=NOW)
    alice = issue_client(tmp_path, "alice", now=NOW)
    pem = export_pem(alice)
    assert len(x509.load_pem_x509_certificates(pem)) == 2
    assert b"PRIVATE KEY" in pem
    key, certificate, others = pkcs12.load_key_and_certificates(export_pkcs12(alice, "changeit"), b"changeit")
    assert key is not None
    assert certificate is not None
    assert certificate.serial_number == alice.serial
    assert len(others) == 1
    with pytest.raises(CertsError, match="password"):
        export_pkcs12(alice, "")


@pytest.mark.parametrize(("content", "said"), [(None, "is missing"), (b"what?", "is damaged")])
def test_an_export_without_a_sound_ca_names_the_file(tmp_path: Path, content: bytes | None, said: str) -> None:
    ensure_pki(tmp_path, "m", [], now=NOW)
    alice = issue_client(tmp_path, "alice", now=NOW)
    alice.ca_path.unlink()
    if content is not None:
        alice.ca_path.write_bytes(content)
    with pytest.raises(CertsError, match=rf"ca\.pem.* {said}"):
        export_pkcs12(alice, "changeit")
