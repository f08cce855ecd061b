"""Where keys and passwords lie, as data: no tool reaches them unless the operator allows that very call.

A workspace's own ``.env`` is an ordinary file. Names are compared in the loosest way that some file system does:
without regard to case, to the form of composed characters and to characters that cannot be seen.
"""

from __future__ import annotations

FOLDERS_ANYWHERE = frozenset({".ssh", ".gnupg", ".password-store"})
"""Folders that hold private keys or passwords wherever they lie."""

NAMES_ANYWHERE = frozenset({".git-credentials", ".pypirc", "key.pem", "private.pem", "privatekey.pem", "secring.gpg"})
"""Whole names of files that hold nothing but keys; a public certificate's ``.pem`` is an ordinary file."""

HOME_PATHS = (
    ".age",
    ".aws",
    ".azure",
    ".boto",
    ".bundle/config",
    ".bunfig.toml",
    ".cache/git/credential",
    ".cache/huggingface/token",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/configstore/firebase-tools.json",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/gcloud",
    ".config/gem/credentials",
    ".config/gh",
    ".config/git/credentials",
    ".config/github-copilot",
    ".config/glab-cli",
    ".config/hcloud",
    ".config/hub",
    ".config/NuGet/NuGet.Config",
    ".config/op",
    ".config/pip/pip.conf",
    ".config/pnpm/rc",
    ".config/pypoetry/auth.toml",
    ".config/rclone",
    ".config/sops",
    ".databrickscfg",
    ".docker/config.json",
    ".dockercfg",
    ".fly",
    ".gem/credentials",
    ".gemini/oauth_creds.json",
    ".git-credentials",
    ".gradle/gradle.properties",
    ".huggingface/token",
    ".kube",
    ".local/share/gem/credentials",
    ".local/share/keyrings",
    ".local/share/opencode/auth.json",
    ".local/share/pypoetry/auth.toml",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".oci",
    ".pgpass",
    ".pip/pip.conf",
    ".pypirc",
    ".s3cfg",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".yarnrc",
    ".yarnrc.yml",
    "_netrc",
    "Library/Application Support/gcloud",
    "Library/Application Support/pypoetry/auth.toml",
    "Library/Application Support/pip/pip.conf",
    "Library/Keychains",
)
"""Files and folders of a home folder, relative to it; a folder means everything below it."""

HOMES = ("/root/", "/var/root/", "/private/var/root/")
"""Home folders besides the user's own, whose credentials are somebody's all the same."""

PARENTS_OF_HOMES = ("/home/", "/users/")
"""Folders that hold home folders, in lower case."""

SYSTEM_PATHS = (
    "/etc/docker/key.json",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/rancher",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/library/keychains",
    "/private/etc/sudoers",
    "/private/var/db/dslocal",
    "/run/secrets",
    "/var/lib/kubelet",
    "/var/run/secrets",
)
"""Absolute paths, in lower case, with everything below them."""

PROCESS_FILES = frozenset({"environ", "mem"})
"""Files of a process under ``/proc`` that show its environment or its memory, keys included."""

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
    ".p8",
    ".pfx",
    ".pkcs12",
    ".ppk",
    "_key.pem",
    "privkey.pem",
)
"""Ends of private-key and key-store names."""

_HOME_PATHS = tuple(path.lower() for path in HOME_PATHS)
_STARTS_OF_HOMES = (*HOMES, *PARENTS_OF_HOMES)


def folded(text: str) -> str:
    """Return a path or name in the form in which two spellings that a file system takes for one are equal."""
    return text.lower() if text.isascii() else _folded_unicode(text)


def is_credential(real: str, user_home: str) -> bool:
    """Say whether a path is a credential location.

    :param real: absolute real path.
    :param user_home: real path of the user's home folder.
    """
    path = folded(real)
    if is_key_name(path.rpartition("/")[2]):
        return True
    parts = path.split("/")
    if not FOLDERS_ANYWHERE.isdisjoint(parts):
        return True
    if path.startswith("/proc/") and parts[-1] in PROCESS_FILES:
        return True
    home = folded(user_home).rstrip("/") + "/"
    if path.startswith(home) and _leads(path[len(home) :], _HOME_PATHS):
        return True
    if path.startswith(_STARTS_OF_HOMES) and _leads(_within_a_home(path), _HOME_PATHS):
        return True
    return _leads(path, SYSTEM_PATHS)


def is_key_name(name: str) -> bool:
    """Say whether a file's name, folded, is that of a private key wherever it lies."""
    if name in NAMES_ANYWHERE or name.endswith(KEY_SUFFIXES):
        return True
    if name.startswith("ssh_host_") and name.endswith("_key"):
        return True
    if not name.startswith(KEY_PREFIXES) or name.endswith(".pub"):
        return False
    stem = name.split(".", 1)[0]
    return stem.removesuffix("_sk") in KEY_PREFIXES


def _within_a_home(path: str) -> str:
    """Return a path relative to the home folder it lies in; empty when it lies in none."""
    for home in HOMES:
        if path.startswith(home):
            return path[len(home) :]
    for parent in PARENTS_OF_HOMES:
        if path.startswith(parent):
            return path[len(parent) :].partition("/")[2]
    return ""


def _leads(path: str, locations: tuple[str, ...]) -> bool:
    """Whether ``path`` is one of the locations or lies below one."""
    return path.startswith(locations) and any(
        path == location or path.startswith(location + "/") for location in locations
    )


def _folded_unicode(text: str) -> str:
    import unicodedata

    seen = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
