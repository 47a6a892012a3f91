# SPDX-License-Identifier: GPL-2.0
"""Types that the kernel's headers do not define, out of BTF.

Definitions of events use types that are known only to the source file that defines the
tracepoints. BTF has them as they are in the kernel, or in the module, to build for: bpftool
prints them as C, each after the types that it consists of."""

import bisect
import lzma
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# A definition of a class of events, and what begins the name of the structure of its records.
CLASS = re.compile(r"^(?:TRACE_EVENT|DECLARE_EVENT)\w*\(\s*(\w+)", re.MULTILINE)
RECORD = "trace_event_raw_"

WORD = re.compile(r"\b[A-Za-z_]\w*\b")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# Headers included by a header of events, except the machinery of events.
INCLUDE = re.compile(r"^#\s*include\s+<(?!trace/(?:define_trace|events/|stages/)).*", re.MULTILINE)
# The same, and headers of its own folder.
LOCAL = re.compile(r"^#\s*include\s+(?:<(?!trace/(?:define_trace|events/|stages/))|\").*", re.MULTILINE)
TAGGED = re.compile(r"\b(?:struct|union|enum) \w+")
POINTER = re.compile(r"\b((?:struct|union) \w+) \*+(\w+)")
TYPEDEF = re.compile(r"\(\*(\w+)\)\(|(\w+)\(.*\);$|(\w+)(?:\[\w*\])*;$")
DEFINED = re.compile(r"((?:struct|union|enum) \w+)\s*\{")
TABLE = Path(__file__).resolve().parent.parent / "rust/probe/modules"
VARIANT = re.compile(r"___\d+\b")
ENUMERATOR = re.compile(r"^\t(\w+) = ", re.MULTILINE)


def source_text(path):
    """
    Returns the text of a file of the kernel's source. An author of a comment may have had another
    encoding.
    """
    return path.read_text(encoding="utf-8", errors="replace")


class Modules:
    """The modules of a kernel. folder is that with modules.dep; None if it is not known."""

    def __init__(self, folder):
        self.files = {}
        if folder:
            for line in (Path(folder) / "modules.dep").read_text(encoding="utf-8").splitlines():
                path = Path(folder) / line.partition(":")[0]
                self.files[path.name.partition(".")[0].replace("-", "_")] = path

    def with_events_of(self, header):
        """
        Returns the file of the module with the events of a header of include/trace/events; None
        if they are not a module's.
        """
        table = dict(line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
        return self.files.get(table.get(header, header).replace("-", "_"))


class Item:
    """A definition."""

    def __init__(self, text):
        self.text = text
        self.names = []
        if text.startswith("typedef"):
            if match := TYPEDEF.search(text):
                self.names.append(next(filter(None, match.groups())))
        elif match := TAGGED.match(text):
            self.names.append(match[0])
        if text.startswith("enum"):
            self.names += ENUMERATOR.findall(text)

    def needs(self, words):
        """
        Names of the types that it consists of, and of the types that members with these names
        point to.
        """
        pointed = {match[1] for match in POINTER.finditer(self.text) if match[2] in words}
        text = POINTER.sub("", self.text)
        return pointed | set(TAGGED.findall(text)) | set(WORD.findall(TAGGED.sub("", text)))


def items(text):
    """
    The definitions that bpftool has printed. It numbers further ones with the same name; most are
    the same, except for pointers to types that are not the same.
    """
    for block in VARIANT.sub("", text).split("\n\n"):
        if "{" in block:
            yield Item(block.strip())
        else:
            yield from (Item(line) for line in block.splitlines() if line.startswith("typedef"))


class Btf:
    """All types of the kernel, file btf, and of a module if one is given."""

    def __init__(self, btf, module=None):
        with tempfile.TemporaryDirectory() as folder:
            bpftool, pahole, file = ["bpftool"], ["pahole", "-F", "btf"], btf
            if module:
                bpftool += ["-B", btf]
                pahole += ["--btf_base", btf]
                file = Path(folder) / "module"
                file.write_bytes(decompressed(module))
            self.text = output(*bpftool, "btf", "dump", "file", file, "format", "c")
            sizes = output(*pahole, "--sizes", file)
        self.sizes = {row[0]: int(row[1]) for row in map(str.split, sizes.splitlines()) if row}

    def wanted(self, header):
        """
        The definitions that the text of a header of events uses, but has not itself, in an order in
        which they can be compiled.
        """
        text = COMMENT.sub("", header)
        words, defined = set(WORD.findall(text)), set(DEFINED.findall(text))
        every, place, unclear = list(items(self.text)), {}, set(defined)
        for index, item in enumerate(every):
            if defined & set(item.names):
                unclear.update(item.names)
            for name in item.names:
                if every[place.setdefault(name, index)].text != item.text:
                    # Only module and kernel know which is meant.
                    unclear.add(name)
        place = {name: index for name, index in place.items()
                 if name not in unclear and not name.startswith("struct trace_event_")}
        todo = {place[name] for name in words | set(TAGGED.findall(text)) if name in place}
        chosen = set()
        while todo:
            index = todo.pop()
            chosen.add(index)
            needed = {place[name] for name in every[index].needs(words) if name in place}
            todo |= needed - chosen
        return [every[index] for index in sorted(chosen)]

    def assertion(self, item):
        """A statement that the compiler lays a structure out as the kernel's did."""
        kind, _, name = item.names[0].partition(" ")
        if kind not in ("struct", "union") or name not in self.sizes:
            return ""
        return f'_Static_assert(sizeof({kind} {name}) == {self.sizes[name]}, "{name}");\n'


def decompressed(module):
    """The bytes of a module's file."""
    if module.suffix == ".xz":
        return lzma.decompress(module.read_bytes())
    if tool := {".zst": "zstd", ".gz": "gzip"}.get(module.suffix):
        return subprocess.run([tool, "-dc", module], stdout=subprocess.PIPE, check=True).stdout
    return module.read_bytes()


def output(*command):
    """Returns the output of a command; empty if it is missing or fails."""
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def failing(prefix, texts, compiles):
    """Returns the numbers of those texts that the compiler finds errors in, after prefix in a C
    file. If it gives up in prefix, none."""
    begins, line = [], prefix.count("\n") + 1
    for text in texts:
        begins.append(line)
        line += text.count("\n")
    messages = compiles(prefix + "".join(texts))
    lines = map(int, re.findall(r"^<stdin>:(\d+):\d+: error", messages, re.MULTILINE))
    return {bisect.bisect_right(begins, line) - 1 for line in lines if begins and line >= begins[0]}


def header(path, btf, compiles, before=None):
    """
    Returns the text of a C header with the types that path, a header of events, uses, and that
    neither the headers which it includes define nor the ones which all probes include. For types
    that these do define it has only assertions, since another type could have the same name.
    compiles(source) are the messages of the compiler for a C file. before is the text in front of a
    header of the kernel's source; that header's own folder can be included from then, too.
    """
    text = source_text(path)
    included = (before or "") + "\n".join((INCLUDE if before is None else LOCAL).findall(text)) + "\n"
    known = included if before is None else f'{included}#include "{path}"\n'
    wanted = btf.wanted(text)
    uses = [f"unsigned long rhist_known_{number} = sizeof({item.names[0]});\n" for number, item in enumerate(wanted)]
    missing = failing(known, uses, compiles)
    texts = [f"{wanted[number].text}\n{btf.assertion(wanted[number])}" for number in sorted(missing)]
    # Leave out types that cannot be defined like this, and then the types that consist of them.
    while wrong := failing(included, texts, compiles):
        texts = [text for number, text in enumerate(texts) if number not in wrong]
    texts += [btf.assertion(item) for number, item in enumerate(wanted) if number not in missing]
    return included + "".join(texts)
