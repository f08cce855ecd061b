"""What programs are held to be: data. A program that stands nowhere here is Write + Workspace like any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crystal.types.approval import Authority


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED = _names("time coproc ! { } [[ ]] if then else elif fi for while until do done case esac in function select")
"""Words of the shell's own grammar; the parser may take one for a program, and bash will not."""

SYSTEM_FOLDERS = frozenset(("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/opt/homebrew/bin"))
"""Where a machine keeps its programs; one named with such a folder is what its name says."""

SHELLS = _names("sh bash zsh dash ksh mksh ash fish csh tcsh rbash yash")
INTERPRETERS = _names(
    "python python2 python3 pypy pypy3 perl ruby node nodejs deno bun php lua luajit osascript pwsh tclsh wish "
    "groovy scala jshell R Rscript julia"
)
CODE_OPTIONS: Mapping[str, str] = {
    "python": "c", "python2": "c", "python3": "c", "pypy": "c", "pypy3": "c", "perl": "eE", "ruby": "e",
    "node": "ep", "nodejs": "ep", "bun": "ep", "php": "rBRE", "lua": "e", "luajit": "e", "osascript": "e",
    "pwsh": "c", "R": "e", "Rscript": "e", "julia": "eE", "scala": "e", "groovy": "e",
}  # fmt: skip
"""Letters of the option after which an interpreter takes its program from the command line."""

DOWNLOADS = _names(
    "curl wget http https xh aria2c axel lynx w3m links nc ncat netcat socat fetch ftp tftp scp ssh telnet"
)
"""What they print came from another machine; read as a program it is Forbidden."""

NETWORK = DOWNLOADS | _names(
    "sftp rsync ping ping6 dig nslookup host traceroute tracepath mtr whois openssl gh glab hub aws gcloud gsutil "
    "az doctl flyctl heroku vercel netlify wrangler kubectl helm oc minikube kind docker podman nerdctl buildah "
    "skopeo docker-compose terraform tofu pulumi ansible ansible-playbook vagrant packer mail mailx sendmail "
    "msmtp svn hg git-lfs ipfs rclone restic ngrok cloudflared nmap psql mysql redis-cli mongosh mongo sqlcmd "
    "iperf3 tcpdump adb twine"
)

ESCALATION = _names(
    "sudo sudoedit doas su pkexec runuser run0 gosu su-exec setpriv chroot unshare nsenter machinectl visudo "
    "capsh setcap passwd chsh useradd userdel usermod groupadd groupdel chpasswd newgrp insmod modprobe rmmod "
    "mount umount swapon swapoff sysctl iptables nft ufw systemctl service launchctl shutdown reboot halt "
    "poweroff init telinit kexec loginctl systemd-run apparmor_parser setenforce"
)
"""They act with other rights than the operator's own, or on the machine as a whole."""

PRIVILEGED = _names(
    "pkill killall killall5 skill fuser crontab at batch anacron shred wipe srm unlink-all mkfs fdisk sfdisk "
    "cfdisk parted sgdisk gdisk wipefs blkdiscard hdparm cryptsetup lvremove vgremove pvremove mdadm losetup "
    "alias unalias eval enable bind hash fc ulimit gdb lldb ptrace chattr setfacl xdg-open open screen tmux dtach "
    "abduco reptyr script expect debugfs"
)
"""Each kills by name, plants something that runs later, destroys beyond repair, or changes what words mean."""

DEVICE_TOOLS = _names(
    "mkfs fdisk sfdisk cfdisk parted sgdisk gdisk wipefs blkdiscard hdparm shred cryptsetup mdadm debugfs "
    "badblocks mkswap"
)
"""Tools that write the devices they are given."""

READERS = _names(
    "ls cat wc head tail stat du df cmp nl tac rev realpath readlink cksum md5sum sha1sum sha224sum sha256sum "
    "sha384sum sha512sum b2sum which whereis comm od hexdump xxd strings fold expand unexpand id whoami uname "
    "grep egrep fgrep rg ag ack diff file cut paste column less more bat tree jq yq test [ cd pushd popd pwd type "
    "man info find fd locate zcat bzcat xzcat base64 sort join look source . awk gawk mawk nawk sed"
)
"""They read what their words name; what they may write has an option of its own, see WRITING_OPTIONS."""

TEXT_ONLY = _names(
    ": echo printf true false exit return sleep seq basename dirname tr expr break continue shift wait jobs fg bg "
    "disown date cal yes tput clear kill logger umask getopts let times type command set shopt hostname nproc"
)
"""Their words are text and name no file."""

FIRST_IS_TEXT = _names("grep egrep fgrep rg ag ack sed awk gawk mawk nawk jq yq perl tr fd")
"""Programs whose first operand is a pattern or a program text."""

TEXT_OPTIONS: Mapping[str, frozenset[str]] = {
    "grep": frozenset(("-e", "--regexp", "--include", "--exclude", "--exclude-dir", "-m", "-A", "-B", "-C")),
    "rg": frozenset(("-e", "--regexp", "-g", "--glob", "--iglob", "-t", "-T", "-r", "--replace", "-A", "-B", "-C")),
    "sed": frozenset(("-e", "--expression")),
    "awk": frozenset(("-F", "-v")),
    "find": frozenset(("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-printf", "-type")),
    "pytest": frozenset(("-k", "-m", "-W", "-p")),
    "curl": frozenset(("-H", "--header", "-d", "--data", "--data-raw", "-X", "-A", "-u", "--url", "-w")),
    "jq": frozenset(("--arg", "--argjson")),
    "sort": frozenset(("-k", "-t", "--key")),
    "cut": frozenset(("-d", "-f", "-c", "-b")),
}
"""Options whose value is text and no path."""

WRITING_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "sed": ("-i", "--in-place"),
    "sort": ("-o", "--output"),
    "tree": ("-o",),
    "xxd": ("-r",),
    "yq": ("-i", "--inplace"),
    "gawk": ("-i",),
    "base64": ("-o",),
}
"""Options by which a reading program writes to the paths among its words."""

HIDDEN_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "tar": (
        "--to-command",
        "--checkpoint-action",
        "-I",
        "--use-compress-program",
        "--rsh-command",
        "-F",
        "--info-script",
        "--new-volume-script",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "ssh": ("-o", "-F"),
    "scp": ("-S", "-o", "-F"),
    "sftp": ("-S", "-o", "-F", "-b"),
    "sort": ("--compress-program",),
    "rg": ("--pre", "--hostname-bin"),
    "man": ("-P", "--pager", "-H", "--html"),
    "less": ("-k", "--lesskey-file"),
    "zip": ("-TT", "--unzip-command"),
    "wget": ("--use-askpass", "--config", "-e", "--execute"),
    "curl": ("-K", "--config"),
    "make": ("--eval",),
    "gmake": ("--eval",),
    "cmake": ("-P",),
    "vim": ("-c", "-S", "--cmd", "-u", "-s"),
    "vi": ("-c", "-S", "--cmd"),
    "nvim": ("-c", "-S", "--cmd", "-u", "-s", "-l"),
    "emacs": ("--eval", "-f", "-l", "--load", "--funcall", "--script"),
    "ed": (),
    "mapfile": ("-C",),
    "readarray": ("-C",),
    "complete": ("-C", "-F"),
    "split": ("--filter",),
    "watch": (),
    "dpkg": ("--pre-invoke",),
    "crontab": (),
    "sqlite3": ("-cmd", "-init"),
    "psql": (),
    "gcc": ("-wrapper", "-fplugin"),
    "openssl": ("-engine", "-provider"),
    "pytest": (),
    "logrotate": (),
}
"""Options that make a program start another one, which no word of the line shows as a program."""

RECURSIVE_CHANGES = frozenset(("chmod", "chown", "chgrp", "chcon"))

ARRAY_BUILTINS = _names(
    "printf test [ read unset declare typeset local readonly export let mapfile readarray wait getopts (("
)
"""They evaluate the index of an array element in a word, substitutions included, whatever its quotes were."""

DANGEROUS_VARIABLES = _names(
    "PATH IFS ENV BASH_ENV BASHOPTS SHELLOPTS PROMPT_COMMAND PS4 CDPATH GLOBIGNORE HOME SHELL EDITOR VISUAL PAGER "
    "MANPAGER BROWSER LESSOPEN LESSCLOSE PERL5OPT PERL5DB PERL5LIB RUBYOPT RUBYLIB NODE_OPTIONS NODE_PATH "
    "JAVA_TOOL_OPTIONS _JAVA_OPTIONS PYTHONSTARTUP PYTHONHOME PYTHONINSPECT PYTHONBREAKPOINT PYTHONWARNINGS "
    "SSH_ASKPASS SUDO_ASKPASS MAKEFLAGS RUSTC_WRAPPER RUSTC CC CXX LD EXINIT VIMINIT GCONV_PATH "
    "DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH OPENSSL_CONF CARGO_HOME npm_config_script_shell"
)
DANGEROUS_PREFIXES = (
    "LD_",
    "DYLD_",
    "GIT_",
    "BASH_FUNC_",
    "CRYSTAL_",
    "npm_config_",
    "NPM_CONFIG_",
    "PIP_",
    "CARGO_TARGET_",
)
"""Variables by which a program is made to load or start something, or a word to mean something else."""

HARMLESS_VALUES = frozenset(("", "cat", "true", ":", "0", "1", "less"))
"""Values of such a variable that start nothing of anybody's."""


class Wrapper(NamedTuple):
    """A program that starts the one its words name.

    :param valued: letters of options with a value.
    :param longs: long options with a value of their own word.
    :param operands: how many operands stand before the program.
    :param authority: what it adds.
    """

    valued: str = ""
    longs: frozenset[str] = frozenset()
    operands: int = 0
    authority: Authority = Authority.WORKSPACE


def _longs(names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names.split())


WRAPPERS: Mapping[str, Wrapper] = {
    "timeout": Wrapper("ks", _longs("kill-after signal"), 1),
    "gtimeout": Wrapper("ks", _longs("kill-after signal"), 1),
    "nice": Wrapper("n", _longs("adjustment")),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "stdbuf": Wrapper("ioe", _longs("input output error")),
    "ionice": Wrapper("cnpPu", _longs("class classdata")),
    "chrt": Wrapper("TPD", operands=1),
    "taskset": Wrapper("", operands=1),
    "builtin": Wrapper(),
    "exec": Wrapper("a"),
    "xargs": Wrapper(
        "IEaLnPsd", _longs("arg-file delimiter max-lines max-args max-procs max-chars replace eof process-slot-var")
    ),
    "parallel": Wrapper("jNLnaIP", _longs("jobs max-args arg-file colsep delay joblog results retries timeout")),
    "strace": Wrapper("abeEIoOpPsSuUX"),
    "ltrace": Wrapper("aADeFlnopsuwx"),
    "unbuffer": Wrapper(),
    "chronic": Wrapper(),
    "caffeinate": Wrapper("tw"),
    "catchsegv": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "dbus-run-session": Wrapper(),
    "xvfb-run": Wrapper("enpsfw", _longs("server-args server-num error-file auth-file wait")),
    "firejail": Wrapper(),
    "cgexec": Wrapper("g"),
    "numactl": Wrapper("NCmpi"),
    "arch": Wrapper(),
    "linux64": Wrapper(),
    "setarch": Wrapper(operands=1),
    "coverage": Wrapper(),
    "sudo": Wrapper("ughCDRThpUrt", _longs("user group host close-from chdir chroot prompt role type"), 0)._replace(
        authority=Authority.PRIVILEGED_ESCALATION
    ),
    "doas": Wrapper("uC", authority=Authority.PRIVILEGED_ESCALATION),
    "pkexec": Wrapper("", _longs("user"), authority=Authority.PRIVILEGED_ESCALATION),
    "run0": Wrapper("ugD", _longs("user group chdir"), authority=Authority.PRIVILEGED_ESCALATION),
    "gosu": Wrapper("", operands=1, authority=Authority.PRIVILEGED_ESCALATION),
    "su-exec": Wrapper("", operands=1, authority=Authority.PRIVILEGED_ESCALATION),
    "chroot": Wrapper("", _longs("userspec groups"), 1, Authority.PRIVILEGED_ESCALATION),
    "unshare": Wrapper("SGR", authority=Authority.PRIVILEGED_ESCALATION),
    "nsenter": Wrapper("tSGr", authority=Authority.PRIVILEGED_ESCALATION),
    "setpriv": Wrapper(authority=Authority.PRIVILEGED_ESCALATION),
    "systemd-run": Wrapper("pEHM", _longs("unit property setenv"), authority=Authority.PRIVILEGED_ESCALATION),
}

RUNNERS: Mapping[tuple[str, str], Authority] = {
    ("uv", "run"): Authority.WORKSPACE,
    ("poetry", "run"): Authority.WORKSPACE,
    ("pdm", "run"): Authority.WORKSPACE,
    ("hatch", "run"): Authority.WORKSPACE,
    ("rye", "run"): Authority.WORKSPACE,
    ("pixi", "run"): Authority.WORKSPACE,
    ("pipenv", "run"): Authority.WORKSPACE,
    ("conda", "run"): Authority.WORKSPACE,
    ("bundle", "exec"): Authority.WORKSPACE,
    ("mise", "exec"): Authority.WORKSPACE,
    ("direnv", "exec"): Authority.WORKSPACE,
    ("pipx", "run"): Authority.NETWORK,
    ("npm", "exec"): Authority.NETWORK,
    ("pnpm", "exec"): Authority.WORKSPACE,
    ("pnpm", "dlx"): Authority.NETWORK,
    ("yarn", "exec"): Authority.WORKSPACE,
    ("yarn", "dlx"): Authority.NETWORK,
    ("uv", "tool"): Authority.NETWORK,
    ("nix", "run"): Authority.NETWORK,
    ("docker", "exec"): Authority.NETWORK,
    ("coverage", "run"): Authority.WORKSPACE,
}
"""Program and verb that start what follows in an environment of their own."""

FETCHING_RUNNERS = frozenset(("npx", "pnpx", "bunx", "uvx"))
"""They may fetch the program that they start."""


def is_dangerous_variable(name: str) -> bool:
    """Whether a variable makes programs load or start something."""
    return name in DANGEROUS_VARIABLES or name.startswith(DANGEROUS_PREFIXES)
