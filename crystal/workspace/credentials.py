"""Where keys and passwords lie, as data: no tool reaches them unless the operator allows that very call.

A workspace's own ``.env`` is an ordinary file. Names are compared without regard to case, because some file
systems do.
"""

from __future__ import annotations

FOLDERS_ANYWHERE = frozenset({".ssh", ".gnupg", ".password-store"})
"""Folders that hold private keys or passwords wherever they lie."""

HOME_PATHS = (
    ".aws",
    ".azure",
    ".boto",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/hcloud",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".databrickscfg",
    ".docker/config.json",
    ".fly",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gradle/gradle.properties",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".kube",
    ".local/share/keyrings",
    ".local/share/opencode/auth.json",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".nuget/nuget/nuget.config",
    ".oci",
    ".pgpass",
    ".pypirc",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".yarnrc.yml",
    "_netrc",
    "library/keychains",
)
"""Files and folders of the user's home, relative to it, in lower case; a folder means everything below it."""

SYSTEM_PATHS = ("/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/library/keychains")
"""Absolute paths, in lower case, with everything below them."""

PROCESS_FILES = frozenset({"environ", "mem"})
"""Files of a process under ``/proc`` that show its environment or its memory, keys included."""

KEY_NAMES = frozenset({"key.pem", "private.pem", "privatekey.pem", "secring.gpg"})
"""Whole names of private-key files, in lower case; a public certificate's ``.pem`` is an ordinary file."""

KEY_PREFIXES = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss")
"""Beginnings of SSH private-key names; such a name with ``.pub`` at its end is the public half."""

KEY_SUFFIXES = (
    "-key.pem",
    ".jks",
    ".kdbx",
    ".key",
    ".key.pem",
    ".keystore",
    ".p12",
    ".pfx",
    ".ppk",
    "_key.pem",
    "privkey.pem",
)
"""Ends of private-key and key-store names."""


def is_credential(real: str, user_home: str) -> bool:
    """Say whether a path is a credential location.

    :param real: absolute real path.
    :param user_home: real path of the user's home folder.
    """
    path = real.lower()
    if is_key_name(path.rpartition("/")[2]):
        return True
    parts = path.split("/")
    if not FOLDERS_ANYWHERE.isdisjoint(parts):
        return True
    if path.startswith("/proc/") and parts[-1] in PROCESS_FILES:
        return True
    home = user_home.lower().rstrip("/") + "/"
    if path.startswith(home) and _leads(path[len(home) :], HOME_PATHS):
        return True
    return _leads(path, SYSTEM_PATHS)


def is_key_name(name: str) -> bool:
    """Say whether a file's name, in lower case, is that of a private key wherever it lies."""
    if name in KEY_NAMES or name.endswith(KEY_SUFFIXES):
        return True
    if name.startswith("ssh_host_") and name.endswith("_key"):
        return True
    if not name.startswith(KEY_PREFIXES) or name.endswith(".pub"):
        return False
    stem = name.split(".", 1)[0]
    return stem.removesuffix("_sk") in KEY_PREFIXES


def _leads(path: str, locations: tuple[str, ...]) -> bool:
    """Whether ``path`` is one of the locations or lies below one."""
    return path.startswith(locations) and any(
        path == location or path.startswith(location + "/") for location in locations
    )
