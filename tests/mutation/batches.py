"""Puts the mutants of a file into one text, each behind a number: one compilation for all.

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
            and not re.match(r"[*/%+<>=|&?:,.-]", old) \
            and not old.startswith("for") or (whole and re.match(r"for \(.*\) \S", old)):
        return f"{{ if (tally_mutant == {number}) {{ {new} }} else {{ {old} }} }}"
    return None


class Batch:
    """Mutants of a file, or of several that are one object, compiled together: numbered from 1."""

    def __init__(self):
        self.sources, self.edits, self.mutants, self.alone = {}, {}, [], False

    def add(self, mutant, source):
        """False where it cannot join."""
        edits = self.edits.get(mutant.file, [])
        at = mutant.place(source)
        end = at + len(mutant.old)
        if any(at < e and s < end for s, e, _ in edits):
            return False
        text = switched(len(self.mutants) + 1, mutant.old, mutant.new, source[:at])
        if text is None:
            return False
        self.sources[mutant.file] = source
        self.edits[mutant.file] = [*edits, (at, end, text)]
        self.mutants.append(mutant)
        return True

    def texts(self):
        """What stands in each of its files."""
        if self.alone:
            return {self.mutants[0].file: self.mutants[0].mutated()}
        texts = dict(self.sources)
        for file, edits in self.edits.items():
            for start, end, new in sorted(edits, reverse=True):
                texts[file] = texts[file][:start] + new + texts[file][end:]
        return texts

    def name(self):
        return self.mutants[0].name().replace(":", "-").replace(".txt", "")

    def files(self):
        return ", ".join(self.sources) if len(self.sources) < 3 else f"{len(self.sources)} files"

    def split(self):
        """Smaller ones: file by file, and one by one where that is done."""
        if len(self.sources) == 1:
            return [alone(m) for m in self.mutants]
        parts = {file: Batch() for file in self.sources}
        for m in self.mutants:
            parts[m.file].add(m, self.sources[m.file])
        return list(parts.values())


def alone(mutant):
    batch = Batch()
    batch.mutants, batch.sources, batch.alone = [mutant], {mutant.file: ""}, True
    return batch


def batches(mutants, root, stage):
    """All mutants, those of one unit joined where they can be."""
    done, open_ones = [], {}
    for m in mutants:
        source = (root / m.file).read_text()
        if not any(b.add(m, source) for b in open_ones.get(m.unit(stage), [])):
            fresh = Batch()
            if fresh.add(m, source):
                open_ones.setdefault(m.unit(stage), []).append(fresh)
                done.append(fresh)
            else:
                done.append(alone(m))
    return done
