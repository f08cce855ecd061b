"""Walks the tree of a command line and keeps the worst it finds; risk and authority only rise."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from crystal.types.approval import Authority, Risk
from plugins_builtin.shell_risk import programs
from plugins_builtin.shell_risk.calls import Call, Flow, Stdin, judge_call
from plugins_builtin.shell_risk.places import Fence, Places
from plugins_builtin.shell_risk.syntax import DEEPEST, is_readable, parse
from plugins_builtin.shell_risk.words import Word, decode, join, simple_word, simple_words, text_of

NESTING = 8
"""How many command lines inside words of others are read; a deeper one is Privileged."""

NO_AUTHORITY = Authority(0)
NO_FLOW = Flow()
_GROUPS = frozenset(
    (
        *("program", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause"),
        *("while_statement", "for_statement", "c_style_for_statement", "case_statement", "case_item"),
        *("negated_command", "binary_expression", "unary_expression", "parenthesized_expression"),
        *("postfix_expression", "ternary_expression", "test_command", "arithmetic_expansion", "subscript"),
    )
)
_WORDS = frozenset(
    (
        *("word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number"),
        *("simple_expansion", "expansion", "command_substitution", "process_substitution", "brace_expression"),
        *("extglob_pattern", "arithmetic_expansion", "regex", "variable_name", "array"),
    )
)
_PROGRAM_NAME = re.compile(r"[A-Za-z0-9_.+-]+")
_BOMB = re.compile(r"([^\s(){}|&;]+)\s*\(\s*\)\s*\{[^}]*?\1\s*\|\s*\1")


class Judge:
    """The class of one command line."""

    def __init__(self, fence: Fence) -> None:
        self.risk = Risk.WRITE
        self.authority = Authority.WORKSPACE
        self.places = Places(fence, self.raise_to)
        self.variables: dict[str, str] = {}
        self._functions: list[str] = []
        self._nesting = 0
        self._depth = 0

    def raise_to(self, risk: Risk, authority: Authority = NO_AUTHORITY) -> None:
        """Keep the worse."""
        self.risk = max(self.risk, risk)
        self.authority |= authority

    def line(self, text: str, flow: Flow = NO_FLOW) -> bool:
        """Judge a whole command line and return whether something in it downloads."""
        if self._nesting >= NESTING or not is_readable(text):
            self.raise_to(Risk.PRIVILEGED)
            self._names(text[:4096])
            return False
        root = parse(text)
        if root.has_error:
            self.raise_to(Risk.PRIVILEGED)
            self._names(text)
            if _BOMB.search(text):
                self.raise_to(Risk.FORBIDDEN)
        if not any(child.type != "comment" for child in root.children):
            self.raise_to(Risk.PRIVILEGED)
        self._nesting += 1
        try:
            return self.walk(root, flow)
        finally:
            self._nesting -= 1

    def walk(self, node: Node, flow: Flow) -> bool:
        """Judge a node and return whether something in it downloads."""
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                self.raise_to(Risk.PRIVILEGED)
                return False
            return self._walk(node, flow)
        finally:
            self._depth -= 1

    def _walk(self, node: Node, flow: Flow) -> bool:
        kind = node.type
        if kind == "command":
            return self._command(node, flow, Stdin.PIPE if flow.piped else Stdin.NOTHING, "")
        if kind == "pipeline":
            return self._pipeline(node, flow)
        if kind == "list":
            return self._list(node, flow)
        if kind == "redirected_statement":
            return self._redirected(node, flow)
        if kind == "subshell":
            return self._apart(node, flow)
        if kind == "function_definition":
            return self._function(node, flow)
        if kind in ("declaration_command", "unset_command"):
            return self._declaration(node)
        if kind in ("variable_assignment", "variable_assignments"):
            return self._assignment(node, alone=True)
        if kind in _GROUPS:
            return self._group(node, flow)
        if kind in _WORDS:
            return self._read(node)
        if kind == "ERROR" or node.is_missing:
            self.raise_to(Risk.PRIVILEGED)
            self._names(text_of(node))
            return self._group(node, flow)
        if not node.is_named or kind in ("comment", "heredoc_start", "heredoc_end", "file_descriptor", "test_operator"):
            return False
        if kind in ("file_redirect", "heredoc_redirect", "herestring_redirect"):
            return self._redirects([node])[0]
        self.raise_to(Risk.PRIVILEGED)  # A kind of node that nobody has judged.
        return self._group(node, flow)

    def _group(self, node: Node, flow: Flow) -> bool:
        downloads = False
        if node.type == "test_command" and re.search(r"'[^']*(?:\$\(|`)", text_of(node)):
            # The index of an array element in a quoted word is evaluated all the same.
            self.raise_to(Risk.PRIVILEGED)
        for child in node.children:
            if node.type == "for_statement" and child.type in _WORDS and child.type != "variable_name":
                for word in self.words(child):
                    self.places.look(word, writes=False)
                    downloads = downloads or word.downloads
            elif child.is_named or child.is_missing:
                earlier = self.places.folders
                downloads = self.walk(child, flow) or downloads
                if self.places.folders is not earlier:
                    self.places.remember(earlier)
        return downloads

    def _list(self, node: Node, flow: Flow, redirects: Sequence[Node] = ()) -> bool:
        left, right = node.children[0], node.children[-1]
        operator = node.children[1].type if len(node.children) > 2 else ";"
        earlier = self.places.folders
        downloads = self.walk(left, flow)
        if operator != "&&":
            self.places.remember(earlier)
        entered = self.places.folders
        downloads = self._with(right, flow, redirects) or downloads
        if operator == "||":
            self.places.remember(entered)
        return downloads

    def _apart(self, node: Node, flow: Flow) -> bool:
        """Judge what runs in a shell of its own, which keeps its folder to itself."""
        earlier = self.places.folders
        downloads = self._group(node, flow)
        self.places.folders = earlier
        return downloads

    def _pipeline(self, node: Node, flow: Flow, redirects: Sequence[Node] = ()) -> bool:
        downloads = flow.downloaded
        piped = flow.piped
        earlier = self.places.folders
        last = node.children[-1]
        for child in node.children:
            if child.type in ("|", "|&"):
                piped = True
            elif child.is_named:
                inner = Flow(piped, downloads)
                downloads = self._with(child, inner, redirects if child == last else ()) or downloads
                self.places.folders = earlier
        return downloads

    def _function(self, node: Node, flow: Flow) -> bool:
        name = next((text_of(child) for child in node.children if child.type == "word"), "")
        body = next((child for child in node.children if child.type not in ("word", "function", "(", ")")), None)
        if body is None:
            return False
        calls = [found for found in _commands(body) if found == name]
        source = text_of(body)
        if calls and (len(calls) > 1 or "&" in source.replace("&&", "")):
            self.raise_to(Risk.FORBIDDEN)  # It multiplies without end.
        return self._apart(body, flow) if body.type != "redirected_statement" else self.walk(body, flow)

    def _redirected(self, node: Node, flow: Flow) -> bool:
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        downloads = False
        for body in node.children:
            if body.is_named and body not in redirects:
                downloads = self._with(body, flow, redirects) or downloads
        if all(child in redirects for child in node.children):
            downloads = self._redirects(redirects)[0]
        return downloads

    def _with(self, body: Node, flow: Flow, redirects: Sequence[Node]) -> bool:
        """Judge a body with its redirections, which the grammar hangs on a whole list and bash on its last command."""
        if not redirects:
            return self.walk(body, flow)
        if body.type == "list":
            return self._list(body, flow, redirects)
        if body.type == "pipeline":
            return self._pipeline(body, flow, redirects)
        if body.type == "negated_command":
            return self._with(body.children[-1], flow, redirects)
        downloads, stdin, script, followers = self._redirects(redirects)
        reads = Stdin.PIPE if stdin is Stdin.NOTHING and flow.piped else stdin
        inner = Flow(piped=flow.piped or stdin is not Stdin.NOTHING, downloaded=flow.downloaded or downloads)
        if body.type == "command":
            downloads = self._command(body, inner, reads, script) or downloads
        else:
            downloads = self.walk(body, inner) or downloads
        for follower in followers:
            # The grammar puts what follows ``<<EOF`` on its line below the redirect.
            is_pipe = follower.type == "pipeline"
            downloads = self.walk(follower, Flow(is_pipe, downloads if is_pipe else False)) or downloads
        return downloads

    def _redirects(self, redirects: Sequence[Node]) -> tuple[bool, Stdin, str, list[Node]]:
        """Judge redirections; return whether they download, what they give to stdin, its text, and what follows."""
        downloads, stdin, script = False, Stdin.NOTHING, ""
        followers: list[Node] = []
        for node in redirects:
            if node.type == "herestring_redirect":
                words = [word for child in node.children if child.is_named for word in self.words(child)]
                stdin, script = Stdin.STRING, " ".join(word.text for word in words)
                downloads = downloads or any(word.downloads for word in words)
            elif node.type == "heredoc_redirect":
                found, stdin, script, more = self._heredoc(node)
                downloads = downloads or found
                followers += more
            else:
                found, reads = self._file_redirect(node)
                downloads = downloads or found
                stdin = Stdin.FILE if reads else stdin
        return downloads, stdin, script, followers

    def _heredoc(self, node: Node) -> tuple[bool, Stdin, str, list[Node]]:
        downloads, script, expands = False, _heredoc_text(node), False
        followers: list[Node] = []
        for child in node.children:
            if "\n" in text_of(child) and child.type in _WORDS:
                # The grammar takes a text that begins with a backslash for words of the command before it.
                self.raise_to(Risk.PRIVILEGED)
            elif child.type == "heredoc_body":
                for part in child.children:
                    if part.is_named and part.type not in ("heredoc_content", "heredoc_end"):
                        expands = True
                        downloads = self._read(part) or downloads
            elif child.type in ("file_redirect", "herestring_redirect"):
                downloads = self._redirects([child])[0] or downloads
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                followers.append(child)
        return downloads, Stdin.EXPANDED if expands else Stdin.LITERAL, script, followers

    def _file_redirect(self, node: Node) -> tuple[bool, bool]:
        """Judge one redirection; return whether its target downloads and whether it feeds stdin."""
        operator, targets = "", []
        descriptor = ""
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = text_of(child)
            elif child.is_named:
                targets += self.words(child)
            else:
                operator = child.type
        writes = operator not in ("<", "<&", "<<<")
        for target in targets:
            if operator in (">&", "<&") and not target.opaque and re.fullmatch(r"[0-9]+-?|-", target.text):
                continue
            if target.process:
                continue
            if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                self.raise_to(Risk.PRIVILEGED, Authority.NETWORK)
                continue
            if writes and (target.opaque or target.glob >= 0):
                self.raise_to(Risk.PRIVILEGED)
            self.places.look(target, writes=writes)
        return any(target.downloads for target in targets), not writes and descriptor in ("", "0")

    def _assignment(self, node: Node, *, alone: bool) -> bool:
        """Judge ``NAME=VALUE``; one that stands alone lasts, so that later words may hold its value."""
        if node.type == "variable_assignments":
            found = [self._assignment(child, alone=alone) for child in node.children if child.is_named]
            return any(found)
        name_node, value = node.children[0], node.children[-1]
        if name_node.type == "subscript":
            self._read(name_node)
        name = text_of(name_node).partition("[")[0]
        has_value = value.is_named and value is not name_node
        words = self.words(value) if has_value else [Word("")]
        text = words[0].text if len(words) == 1 else ""
        if programs.is_dangerous_variable(name) and text not in programs.HARMLESS_VALUES:
            self.raise_to(Risk.PRIVILEGED)
        if alone:
            self.variables[name] = text if len(words) == 1 and not words[0].opaque else ""
        elif text.startswith(("/", "~", "..")):
            for part in text.split(":"):
                self.places.look(Word(part), writes=False)
        return any(word.downloads for word in words)

    def _declaration(self, node: Node) -> bool:
        downloads = False
        for child in node.children[1:]:
            if child.type == "variable_assignment":
                downloads = self._assignment(child, alone=True) or downloads
            elif child.is_named:
                text = text_of(child)
                is_name = child.type == "word" or node.type == "unset_command"
                if "$(" in text or "`" in text or (is_name and programs.is_dangerous_variable(text)):
                    self.raise_to(Risk.PRIVILEGED)
                downloads = self._read(child) or downloads
        return downloads

    def _command(self, node: Node, flow: Flow, stdin: Stdin, script: str) -> bool:
        simple = simple_words(node)
        if simple is not None:
            return judge_call(self, Call(simple, flow.downloaded, stdin, script))
        words: list[Word] = []
        downloads = False
        fed = flow.downloaded
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment":
                downloads = self._assignment(child, alone=False) or downloads
            elif kind.endswith("_redirect"):
                found, reads, text, _ = self._redirects([child])
                downloads, fed = downloads or found, fed or found
                if reads is not Stdin.NOTHING:
                    stdin, script = reads, text
            elif child.is_missing or kind == "ERROR":
                self.walk(child, flow)
            else:
                words += self.words(child)
        call = Call(words=words, flow_downloaded=fed, stdin=stdin, script=script)
        return judge_call(self, call) or downloads

    def words(self, node: Node) -> list[Word]:
        """Return the words of a node, and judge every substitution inside."""
        if node.type == "process_substitution":
            return [Word("", opaque=True, downloads=self._apart(node, NO_FLOW), process=True)]
        simple = simple_word(node)
        if simple is not None:
            return [simple]
        if node.type == "array":
            return [word for child in node.children if child.is_named for word in self.words(child)]
        downloads = self._read(node)
        return join(decode(node, self.variables), downloads=downloads)

    def _read(self, node: Node) -> bool:
        """Judge the substitutions inside a word and return whether one downloads."""
        if node.type in ("command_substitution", "process_substitution"):
            return self._apart(node, NO_FLOW)
        self._depth += 1
        downloads = False
        if self._depth > DEEPEST:
            self.raise_to(Risk.PRIVILEGED)
        else:
            for child in node.children:
                if child.child_count:
                    downloads = self._read(child) or downloads
        self._depth -= 1
        return downloads

    def _names(self, text: str) -> None:
        """Add what known programs among the words of an unread text reach."""
        for name in _PROGRAM_NAME.findall(text):
            if name in programs.NETWORK:
                self.authority |= Authority.NETWORK
            if name in programs.ESCALATION:
                self.authority |= Authority.PRIVILEGED_ESCALATION


def _heredoc_text(node: Node) -> str:
    """Return the text of a heredoc by its place in the source, which does not depend on how it was parsed."""
    source = node.text or b""
    end = next((child.start_byte for child in node.children if child.type == "heredoc_end"), node.end_byte)
    begin = next((child.end_byte for child in node.children if child.type == "heredoc_start"), node.start_byte)
    rest = source[begin - node.start_byte : end - node.start_byte]
    return rest.partition(b"\n")[2].decode("utf-8", "replace")


def _commands(node: Node) -> list[str]:
    """Return the names of every command below a node."""
    found = []
    pending = [node]
    while pending:
        current = pending.pop()
        if current.type == "command_name":
            found.append(text_of(current))
        pending += current.children
    return found
