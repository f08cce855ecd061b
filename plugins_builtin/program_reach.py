"""Programs by what they reach beyond the workspace: data for the judge of shell commands."""

from __future__ import annotations


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


NETWORK_PROGRAMS = _names(
    "curl wget ssh scp sftp rsync nc ncat netcat telnet ftp tftp ping ping6 dig nslookup host traceroute "
    "http https xh aria2c axel socat openssl gh glab aws gcloud az kubectl helm docker podman terraform "
    "ansible pip pip3 pipx uv uvx poetry pdm conda mamba npm npx yarn pnpm bun bunx deno gem bundle cargo "
    "go composer apt apt-get aptitude yum dnf zypper brew pacman apk snap flatpak port lynx w3m links "
    "mail sendmail git-lfs svn hg"
)
"""Clients, and tools that download what they need."""

GIT_NETWORK_VERBS = _names("push pull fetch clone ls-remote submodule remote request-pull send-email lfs")

ESCALATION_PROGRAMS = _names(
    "sudo sudoedit doas su pkexec runuser run0 gosu su-exec setpriv chroot unshare nsenter machinectl visudo"
)
"""They give a command other rights than the operator's own."""

DOWNLOAD_PROGRAMS = _names("curl wget http https xh aria2c axel lynx w3m nc ncat netcat")
"""What they print came from another machine; piped into an interpreter it is Forbidden."""

INTERPRETERS = _names(
    "sh bash zsh dash ksh fish ash csh tcsh python python2 python3 perl ruby node deno bun php lua osascript pwsh"
)

SCRIPT_RUNNERS = INTERPRETERS | _names("env eval xargs trap su ssh watch parallel find")
"""Programs that take a command line inside one of their words."""
