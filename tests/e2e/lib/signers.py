"""Keys, files of allowed signers, and an authority of time stamps, for tests."""

import subprocess

AUTHORITY = """[req]
distinguished_name = dn
prompt = no
[dn]
CN = Test authority
[v3]
extendedKeyUsage = critical,timeStamping
basicConstraints = critical,CA:true
[tsa]
default_tsa = t
[t]
serial = serial
signer_cert = ca.pem
signer_key = ca.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
tsa_name = yes
"""


def tool(place, *arguments):
    subprocess.run(arguments, cwd=place.folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def key(place, name, passphrase=""):
    tool(place, "ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", f"{name}@lab", "-f", name)
    return place.path(name)


def allow(place, *names, file="allowed_signers"):
    lines = []
    for name in names:
        with open(place.path(name + ".pub"), encoding="utf-8") as f:
            lines.append(f"{name}@lab {' '.join(f.read().split()[:2])}\n")
    return place.write(file, "".join(lines))


def authority(place):
    """The certificate to believe."""
    place.write("ca.cnf", AUTHORITY)
    place.write("serial", "01\n")
    tool(place, "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
         "-config", "ca.cnf", "-extensions", "v3")
    return place.path("ca.pem")


def stamp(place, grid):
    """The authority's answer to the request beside the lock."""
    tool(place, "openssl", "ts", "-reply", "-config", "ca.cnf", "-section", "t", "-queryfile", grid + ".lock.tsq", "-out",
         grid + ".lock.tsr")
