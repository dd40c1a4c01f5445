"""Puts several mutants of a file into one text, each behind a number: one compilation for all.

`return a + b;` and `return a - b;` become `return tally_mutant == 3 ? (a - b) : (a + b);`, whole
statements an if and an else. What cannot be written so is compiled alone. That the switch itself
changes nothing is seen by the proofs, which must hold for number 0.
"""
import re

OPEN, CLOSE = "([{", ")]}"


def balanced(text):
    depth = []
    for c in text:
        if c in OPEN:
            depth.append(c)
        elif c in CLOSE:
            if not depth or OPEN.index(depth.pop()) != CLOSE.index(c):
                return False
    return not depth


def pieces(text):
    """The text cut at its commas outside of brackets; those of templates may be cut too."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in OPEN) - (c in CLOSE)
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [*parts, text[start:]]


def choice(number, old, new):
    return f"(tally_mutant == {number} ? ({new}) : ({old}))"


def is_expression(text):
    """Whether it may stand between brackets: nothing of a statement, no operator at its ends."""
    text = text.strip()
    return (balanced(text) and ";" not in text and not text.startswith("{") and len(pieces(text)) == 1
            and not re.match(r"[-+*/%&|<>=!]?=[^=]|[*/%+<>=|&?:,.]|return\b|const\b|if\b|for\b", text)
            and not re.search(r"[^=<>!]=[^=]|[-*/%+<>=|&?:,.]$", text))


def switched_value(number, old, new):
    """Values, or `NAME = VALUE` with one name, or a list of those."""
    if is_expression(old) and is_expression(new):
        return choice(number, old.strip(), new.strip())
    olds, news = pieces(old), pieces(new)
    if len(olds) != len(news):
        return None
    done = []
    for one, other in zip(olds, news):
        if one == other:
            done.append(one)
            continue
        a, b = (re.match(r"(.*?[^=<>!]?[-+*/]?=(?!=) *)(.*)$", t, re.S) for t in (one, other))
        if not a or not b or a.group(1) != b.group(1) or not is_expression(a.group(2)) \
                or not is_expression(b.group(2)):
            return None
        done.append(a.group(1) + choice(number, a.group(2).strip(), b.group(2).strip()))
    return ",".join(done)


def starts_statement(before):
    """Whether a statement may start after this text."""
    code = re.sub(r"//[^\n]*", "", before).rstrip()
    return code[-1:] in (";", "{", "}", ")", ":")


def switched(number, old, new, before):
    """What stands for old and new; nothing where one text cannot."""
    if old.startswith("return ") and new.startswith("return ") and old.endswith(";") \
            and new.endswith(";"):
        value = switched_value(number, old[7:-1], new[7:-1])
        if value:
            return f"return {value};"
    whole = old.endswith(";") and new.endswith(";")
    value = switched_value(number, old.removesuffix(";"), new.removesuffix(";"))
    if value and whole == (";" in old):
        return value + (";" if whole else "")
    declares = re.match(r"(const |auto |double |float |bool |int64_t |F32 |I32 |A |Score)", old)
    if whole and balanced(old) and balanced(new) and not declares and starts_statement(before) \
            and not old.startswith("for") or (whole and re.match(r"for \(.*\) \S", old)):
        return f"{{ if (tally_mutant == {number}) {{ {new} }} else {{ {old} }} }}"
    return None


class Batch:
    """Mutants of one file, compiled together: numbered from 1."""

    def __init__(self, source):
        self.source, self.mutants, self.edits, self.alone = source, [], [], False

    def add(self, mutant):
        """False where it cannot join."""
        at = mutant.place(self.source)
        end = at + len(mutant.old)
        if any(at < e and s < end for s, e, _ in self.edits):
            return False
        text = switched(len(self.mutants) + 1, mutant.old, mutant.new, self.source[:at])
        if text is None:
            return False
        self.edits.append((at, end, text))
        self.mutants.append(mutant)
        return True

    def text(self):
        if self.alone:
            return self.mutants[0].mutated()
        text = self.source
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def name(self):
        return self.mutants[0].name().replace(":", "-").replace(".txt", "")

    def split(self):
        return [alone(m, self.source) for m in self.mutants]


def alone(mutant, source):
    batch = Batch(source)
    batch.mutants, batch.alone = [mutant], True
    return batch


def batches(mutants, root):
    """All mutants, those of one file and one set of options joined where they can be."""
    done, open_ones = [], {}
    for m in mutants:
        source = (root / m.file).read_text()
        key = m.file, str(m.options)
        if not any(b.add(m) for b in open_ones.get(key, [])):
            fresh = Batch(source)
            if fresh.add(m):
                open_ones.setdefault(key, []).append(fresh)
                done.append(fresh)
            else:
                done.append(alone(m, source))
    return done
