"""For tests of builtin tools: a home of the host, and a sandbox that tries to change it."""

import os
import socket
from contextlib import contextmanager

SECRET = '{"claudeAiOauth": {"refreshToken": "of the host"}}\n'

# The files of programs that an attacker would like to write to.
FILES = {
    ".claude/.credentials.json": SECRET,
    ".claude/settings.json": '{"hooks": {}}\n',
    ".claude/agents/one.md": "an agent\n",
    ".claude.json": '{"mcpServers": {}}\n',
    ".codex/auth.json": SECRET,
    ".codex/config.toml": "notify = []\n",
    ".agents/one.md": "an agent\n",
    ".config/gh/hosts.yml": "oauth_token: of the host\n",
    ".config/gh/config.yml": "aliases: {}\n",
    ".gitconfig": "[alias]\n",
    ".ssh/known_hosts": "host key\n",
    ".cache/uv/wheel": "a wheel\n",
    ".npm/_cacache/one": "a package\n",
    ".local/share/opencode/auth.json": SECRET,
    ".config/opencode/opencode.json": "{}\n",
}
TOOLS = ["claude", "codex", "git", "uv", "npm", "opencode"]
# In sandboxes of agents-sandbox these are the host's own files.
LIVE = set(FILES) - {".gitconfig", ".config/gh/hosts.yml", ".config/gh/config.yml"}
# Files that a sandbox gets as copies.
COPIES = {
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".config/gh/hosts.yml",
    ".ssh/known_hosts",
    ".local/share/opencode/auth.json",
}
CACHES = {".cache/uv/wheel", ".npm/_cacache/one"}


def fill(home):
    for name, text in FILES.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o600)


def look(home):
    """All files, with the attributes that show a change."""
    found = {}
    for path in sorted(home.rglob("*")):
        stat = path.lstat()
        text = path.read_bytes() if path.is_file() else b""
        kept = stat.st_mode, stat.st_uid, stat.st_gid, stat.st_ino, stat.st_mtime_ns
        found[str(path.relative_to(home))] = (*kept, text)
    return found


def harm():
    """A script that writes to each file in several ways, and then replaces it."""
    lines = ["cd ~ || exit 1"]
    for name in FILES:
        parent = os.path.dirname(name) or "."
        lines += [
            f"mkdir -p {parent}",
            f"echo harm >>{name}",
            f"chmod 666 {name}",
            f"rm -f {name}",
            f"echo harm >{name}",
            f"echo harm >{parent}/left-behind",
        ]
    lines.append("true")
    return " 2>/dev/null; ".join(lines)


def reads(names):
    """A script that succeeds if these files equal the host's and there is no other file."""
    lines = ["cd ~ || exit 1"]
    for name, text in FILES.items():
        if name in names:
            lines.append(f"[ \"$(cat {name})\" = '{text.strip()}' ] || exit 2")
        else:
            lines.append(f"! [ -e {name} ] || exit 3")
    lines.append("! [ -e /ssh-agent ] && ! [ -e /pulse-audio ] || exit 4")
    return "; ".join(lines)


@contextmanager
def listening(path):
    """A socket of a service of the host."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        yield path
