"""The regular expressions of ripgrep in the words of Python's ``re``, so that both backends find the same.

Pure. What ripgrep refuses is refused; what only it can do (scripts and other Unicode properties, byte mode) is refused
with that reason. No translated pattern ever matches a line break, a carriage return or a byte that is not UTF-8.
"""

from __future__ import annotations

import re
import unicodedata

from crystal.types._frozen import Frozen
from plugins_builtin.search.characters import (
    FOREIGN,
    NEVER,
    POSIX_SETS,
    SPACES,
    CharacterSet,
    combined,
    escaped_in_set,
    is_word,
    ranges_of,
)

_DEEPEST = 100
"""Groups and classes within each other; ripgrep allows a few more."""

_CONTROLS = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_DOTTED = "\u0130\u0131"
"""Letters that Python takes for an ``i`` when case is ignored, and Unicode's simple folding does not."""


class PatternFault(ValueError):
    """A pattern that cannot be used; the message says why, without a full stop."""


class Translation(Frozen):
    """A pattern for texts of several lines.

    :param plain: for texts of ASCII characters without a carriage return; compile it with ``re.ASCII`` and
        ``re.MULTILINE``. Empty when only ``wide`` will do.
    :param wide: for all others.
    :param literal: a text that stands in every match as it is; may be empty.
    """

    plain: str
    wide: str
    literal: str


def translate(pattern: str, *, ignore_case: bool) -> Translation:
    """Translate a pattern.

    :raises PatternFault: when it cannot be used.
    """
    plain = _Parser(pattern, ignore_case, wide=False)
    text = plain.parse()
    wide = _Parser(pattern, ignore_case, wide=True)
    return Translation(
        plain="" if plain.folds_wide else text,
        wide=wide.parse(),
        literal=plain.literal,
    )


class _Parser:
    """Reads one pattern once. Flags hold from where they stand to the end of their group."""

    def __init__(self, pattern: str, ignore_case: bool, *, wide: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0
        self._wide = wide
        self._ignore_case = ignore_case
        self._verbose = False
        self._names: set[str] = set()
        self._word = r"0-9A-Za-z_" if not wide else ""
        self._longest = ""
        self.literal = ""
        self.folds_wide = False

    def parse(self) -> str:
        text = self._alternatives(top=True)
        if self._at < len(self._pattern):
            raise PatternFault("unopened group")
        return text

    def _alternatives(self, *, top: bool = False) -> str:
        branches = [self._branch()]
        longest = self._longest
        while self._take("|"):
            branches.append(self._branch())
        if top and len(branches) == 1:
            self.literal = longest
        return "|".join(branches)

    def _branch(self) -> str:
        written: list[str] = []
        longest = run = ""
        while (character := self._peek()) not in ("", "|", ")"):
            if self._verbose and (character.isspace() or character == "#"):
                self._at = self._at + 1 if character != "#" else len(self._pattern)
                continue
            if character in "*+?{":
                raise PatternFault("repetition operator missing expression")
            atom, single = self._atom()
            repeated, needed = self._repeated(atom)
            written.append(repeated)
            run = run + single if single and repeated == atom else single if single and needed else ""
            longest = max(longest, run, key=len)
            if repeated != atom:
                run = ""
        self._longest = longest
        return "".join(written)

    def _repeated(self, atom: str) -> tuple[str, bool]:
        """Take the repetition operators that follow; also say whether the atom stands there at least once."""
        needed = True
        for _ in range(_DEEPEST):
            if self._verbose:
                while self._peek().isspace():
                    self._at += 1
            if self._take("*"):
                operator, needed = "*", False
            elif self._take("+"):
                operator = "+"
            elif self._take("?"):
                operator, needed = "?", False
            elif self._take("{"):
                operator, least = self._counts()
                needed = needed and least > 0
            else:
                return atom, needed
            if not atom:
                raise PatternFault("repetition operator missing expression")
            self._take("?")
            atom = f"(?:{atom}){operator}"
        raise PatternFault(f"more than {_DEEPEST} repetition operators follow each other")

    def _counts(self) -> tuple[str, int]:
        found = re.compile(r"\s*(\d{1,9})\s*(?:(,)\s*(\d{0,9})\s*)?\}", re.ASCII).match(self._pattern, self._at)
        if found is None:
            raise PatternFault("repetition quantifier expects a valid decimal; write \\{ for a brace")
        least, comma, most = int(found[1]), found[2], found[3]
        if comma and most and int(most) < least:
            raise PatternFault("invalid repetition count range, the start must be <= the end")
        if max(least, int(most or 0)) > 100_000:
            raise PatternFault("a repetition count is too large")
        self._at = found.end()
        return f"{{{least}{',' if comma else ''}{int(most) if most else ''}}}", least

    def _atom(self) -> tuple[str, str]:
        """Take one atom; also return it as a plain character when it is one that a text must hold as it is."""
        character = self._next()
        if character == "(":
            return self._group(), ""
        if character == "[":
            return self._class_atom(self._bracket()), ""
        if character == ".":
            return (f"[^{NEVER}]" if self._wide else "."), ""
        if character == "^":
            return (r"(?<![^\n\r])" if self._wide else "(?:^)"), ""
        if character == "$":
            return (r"(?![^\n\r])" if self._wide else "(?:$)"), ""
        if character == "\\":
            return self._escape()
        return self._literal(character)

    def _literal(self, character: str) -> tuple[str, str]:
        if character in "\n\r":
            raise PatternFault(f"the literal {character!r} is not allowed, since lines are searched one at a time")
        if not self._ignore_case:
            return re.escape(character), character
        if not character.isascii():
            self.folds_wide = True
        if self._wide and character in "iI":
            return "[iI]", ""
        if self._wide and character in _DOTTED:
            return character, ""
        return f"(?i:{re.escape(character)})", ""

    def _class_atom(self, found: CharacterSet) -> str:
        text = found.matching()
        if not self._ignore_case:
            return text
        if not self._wide:
            return f"(?i:{text})"
        return f"(?:(?![{_DOTTED}])(?i:{text})|(?=[{_DOTTED}]){text})"

    def _group(self) -> str:
        self._deeper()
        kept = self._ignore_case, self._verbose
        if self._take("?"):
            named = re.compile(r"P?<([^>]*)>").match(self._pattern, self._at)
            if named is not None and named[1][:1] not in ("=", "!"):
                self._name(named[1])
                self._at = named.end()
            elif self._peek() in ("=", "!") or self._pattern.startswith(("<=", "<!"), self._at):
                raise PatternFault("look-around is not supported")
            elif self._flags():
                # Flags of their own hold for the rest of the group they stand in.
                self._depth -= 1
                return ""
        text = self._alternatives()
        if not self._take(")"):
            raise PatternFault("unclosed group")
        self._ignore_case, self._verbose = kept
        self._depth -= 1
        return f"(?:{text})"

    def _name(self, name: str) -> None:
        if not re.fullmatch(r"[A-Za-z_][\w.\[\]]*", name):
            raise PatternFault("invalid capture group name")
        if name in self._names:
            raise PatternFault("duplicate capture group name")
        self._names.add(name)

    def _flags(self) -> bool:
        """Take flags; ``True`` when they end the group."""
        on = True
        seen = ""
        while (flag := self._next()) not in (":", ")"):
            if flag == "":
                raise PatternFault("unclosed group")
            if flag == "-" and on:
                on = False
                continue
            if flag not in "ismxUuR" or flag in seen:
                raise PatternFault("unrecognized or repeated flag")
            seen += flag
            if flag == "i":
                self._ignore_case = on
            elif flag == "x":
                self._verbose = on
            elif (flag in "um" and not on) or flag == "R":
                raise PatternFault(f"the flag {flag} needs ripgrep, which is not installed")
        if (flag == ")" and not seen) or self._pattern[self._at - 2] == "-":
            raise PatternFault("a flag is missing")
        return flag == ")"

    def _escape(self) -> tuple[str, str]:
        character = self._next()
        if character and character in "bB<>":
            return self._place(character), ""
        if character and character in "dDsSwWpP":
            return self._class_atom(self._named_class(character)), ""
        return self._literal(self._escaped(character))

    def _escaped(self, character: str) -> str:
        """Return the character that an escape stands for."""
        if character == "":
            raise PatternFault("incomplete escape sequence, reached end of pattern prematurely")
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character in "xuU":
            return self._hexadecimal(character)
        if character.isdigit() and character.isascii():
            raise PatternFault("backreferences are not supported")
        if not character.isascii() or character.isalnum() or character in "<>":
            raise PatternFault("unrecognized escape sequence")
        return character

    def _hexadecimal(self, kind: str) -> str:
        digits = {"x": 2, "u": 4, "U": 8}[kind]
        found = re.compile(rf"\{{([0-9A-Fa-f]+)\}}|([0-9A-Fa-f]{{{digits}}})").match(self._pattern, self._at)
        if found is None:
            raise PatternFault("invalid hexadecimal digit")
        self._at = found.end()
        code = int(found[1] or found[2], 16)
        if code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise PatternFault("hexadecimal literal is not a Unicode scalar value")
        return chr(code)

    def _place(self, character: str) -> str:
        word = f"[{self._words()}]"
        before, after = f"(?<={word})", f"(?={word})"
        not_before, not_after = f"(?<!{word})", f"(?!{word})"
        if character == "b" and self._peek() == "{":
            named = re.compile(r"\{(start|end|start-half|end-half)\}").match(self._pattern, self._at)
            if named is not None:
                self._at = named.end()
                valid_before, valid_after = f"(?<![{FOREIGN}])", f"(?![{FOREIGN}])"
                return {
                    "start": f"{not_before}{after}",
                    "end": f"{before}{not_after}",
                    "start-half": f"(?:{not_before}{valid_before})",
                    "end-half": f"(?:{not_after}{valid_after})",
                }[named[1]]
            if re.compile(r"\{[A-Za-z-]*\}").match(self._pattern, self._at):
                raise PatternFault("unrecognized special word boundary assertion")
        if character == "<":
            return f"(?:{not_before}{after})"
        if character == ">":
            return f"(?:{before}{not_after})"
        if not self._wide:
            return f"(?:\\{character})"
        if character == "b":
            return f"(?:{not_before}{after}|{before}{not_after})"
        valid = f"(?<![{FOREIGN}])(?![{FOREIGN}])"
        return f"(?:{valid}(?:{before}{after}|{not_before}{not_after}))"

    def _named_class(self, character: str) -> CharacterSet:
        if character in "pP":
            inner, inverse = self._property()
            negated = (character == "P") != inverse
        else:
            negated = character.isupper()
            kind = character.lower()
            spaces = SPACES if self._wide else r"\t\v\f "
            inner = self._words() if kind == "w" else r"\d" if kind == "d" else spaces
        found = CharacterSet(inner=inner)
        return CharacterSet(regex=found.without(NEVER)) if negated else found

    def _property(self) -> tuple[str, bool]:
        found = re.compile(r"\{(\^?)(\w+)\}|(\w)").match(self._pattern, self._at)
        name = "" if found is None else (found[2] or found[3] or "").lower()
        category = name[:1].upper() + name[1:]
        if found is None or not re.fullmatch(r"L[ulmto]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?", category):
            raise PatternFault("this Unicode property needs ripgrep, which is not installed")
        self._at = found.end()
        self.folds_wide = True
        return ranges_of(lambda character: unicodedata.category(character).startswith(category)), bool(found[1])

    def _words(self) -> str:
        if not self._word:
            self._word = ranges_of(is_word)
        return self._word

    def _bracket(self) -> CharacterSet:
        """Take a class after its opening bracket."""
        self._deeper()
        negated = self._take("^")
        left: CharacterSet | None = None
        operator = ""
        while True:
            items = self._items(first=left is None and not operator)
            left = items if left is None else combined(left, operator, items)
            if self._take("]"):
                break
            operator = self._next() + self._next()
        self._depth -= 1
        if negated:
            return CharacterSet(regex=left.without(NEVER))
        if left.inner in ("\n", "\r"):
            raise PatternFault("a class of nothing but a line break is not allowed")
        matching = re.compile(left.matching())
        if matching.match("\n") or matching.match("\r"):
            return CharacterSet(regex=f"(?:(?![\\n\\r]){left.matching()})")
        return left

    def _items(self, *, first: bool) -> CharacterSet:
        """Take what stands in a class up to its end or to a set operator."""
        inner: list[str] = []
        others: list[str] = []
        while True:
            character = self._class_peek()
            if character == "":
                raise PatternFault("unclosed character class")
            operator = self._pattern.startswith(("&&", "--", "~~"), self._at)
            leading = first and character == "-"
            if (character == "]" and (not first or inner)) or (operator and not leading):
                break
            if leading:
                self._at += 1
                inner.append("\\-")
                continue
            first = False
            item = self._item()
            if item.regex:
                others.append(item.regex)
            else:
                inner.append(item.inner)
        joined = "".join(inner)
        if not others:
            return CharacterSet(inner=joined)
        return CharacterSet(regex=f"(?:{'|'.join([*others, *([f'[{joined}]'] if joined else [])])})")

    def _item(self) -> CharacterSet:
        character = self._next()
        if character == "[":
            named = re.compile(r":(\^?)(\w+):\]").match(self._pattern, self._at)
            if named is not None and named[2] in POSIX_SETS:
                self._at = named.end()
                found = CharacterSet(inner=POSIX_SETS[named[2]])
                return CharacterSet(regex=found.without(NEVER)) if named[1] else found
            return self._bracket()
        if character == "\\" and self._peek() in tuple("dDsSwWpP"):
            return self._named_class(self._next())
        start = self._class_character(character)
        if self._class_peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in ("", "]", "-"):
            return CharacterSet(inner=escaped_in_set(start))
        self._at += 1
        self._class_peek()
        character = self._next()
        if character == "[" or (character == "\\" and self._peek() in tuple("dDsSwWpP")):
            raise PatternFault("invalid range boundary, must be a literal")
        end = self._class_character(character)
        if end < start:
            raise PatternFault("invalid character class range, the start must be <= the end")
        return CharacterSet(inner=f"{escaped_in_set(start)}-{escaped_in_set(end)}")

    def _class_character(self, character: str) -> str:
        if character == "\\":
            escaped = self._next()
            if escaped in tuple("bBAz<>"):
                raise PatternFault("invalid escape sequence found in character class")
            character = self._escaped(escaped)
        if self._ignore_case and not character.isascii():
            self.folds_wide = True
        return character

    def _class_peek(self) -> str:
        if self._verbose:
            while self._peek().isspace():
                self._at += 1
        return self._peek()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternFault(f"groups are nested more than {_DEEPEST} deep")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _take(self, character: str) -> bool:
        taken = self._peek() == character
        self._at += taken
        return taken
