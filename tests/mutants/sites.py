# Copyright (c) 2026 The bhyve-vale authors
#
# SPDX-License-Identifier: BSD-2-Clause

"""Finds what can be mutated in C files, and writes the files with all mutants.

clang's AST gives each expression and statement with its offsets in the file.
An edit is a range of the file with the texts that may replace it.  All edits
of a file are compiled in at once:

    a < b + 1	(MUTANT(1) ? (a <= b + 1) : MUTANT(2) ? (a >= b + 1) :
            (a < (MUTANT(3) ? (b - 1) : (b + (MUTANT(4) ? ...

One mutant runs at a time, so that a replacement has the original text of its
operands, and the text grows with depth only.

Constants that the compiler needs (initializers of static objects, sizes, case
labels, #if) are left out, because a mutant is chosen at run time.  Bodies of
macros are left out, because their text is not where they are used.
"""

import ctypes
import re
import subprocess

from clang import cindex
from clang.cindex import CursorKind as K, TypeKind as T

cindex.conf.lib.clang_getFileLocation.argtypes = [
    cindex.SourceLocation, ctypes.POINTER(cindex.c_object_p),
    ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_uint),
    ctypes.POINTER(ctypes.c_uint)]

cindex.conf.lib.clang_Cursor_Evaluate.argtypes = [cindex.Cursor]
cindex.conf.lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
for _f in ("getKind", "getAsInt", "dispose"):
    getattr(cindex.conf.lib, "clang_EvalResult_" + _f).argtypes = \
        [ctypes.c_void_p]

# Assertions, probes and messages: what they say is no behaviour.  Neither is
# what is in the cache, and va_end() does nothing.
UNMUTATED = re.compile(
    r"^(MPASS|KASSERT|_Static_assert|static_assert|offsetof|__offsetof"
    r"|nitems|sizeof|va_end|([a-z_]+_)?assert(_[a-z]+)?"
    r"|DELIVER_FETCH"
    r"|[A-Z0-9]+_PROBE[0-9]?)$")
UNMUTATED_CALLS = re.compile(
    r"(^|_)(log|warnx?|printf|fprintf|probe(_[a-z_]+)?|prefetch"
    r"|assert(_[a-z]+)?)$")

RELATIONS = {"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"],
    "==": [], "!=": []}
NEGATIONS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=",
    "!=": "=="}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}
BITS = {"&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<"}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "|=": "=", "&=": "=", "^=": "|=",
    "<<=": ">>=", ">>=": "<<=", "*=": "/=", "/=": "*="}

INTEGERS = {T.BOOL, T.CHAR_U, T.UCHAR, T.USHORT, T.UINT, T.ULONG, T.ULONGLONG,
    T.CHAR_S, T.SCHAR, T.SHORT, T.INT, T.LONG, T.LONGLONG, T.ENUM}

STATEMENTS = {K.BINARY_OPERATOR, K.COMPOUND_ASSIGNMENT_OPERATOR,
    K.UNARY_OPERATOR, K.CALL_EXPR, K.BREAK_STMT, K.CONTINUE_STMT, K.GOTO_STMT,
    K.DO_STMT, K.PAREN_EXPR, K.UNEXPOSED_EXPR, K.CSTYLE_CAST_EXPR,
    K.StmtExpr}

COMMENT = re.compile(r"/\*.*?\*/", re.S)


def value(cursor):
    """The value of a constant, or None."""
    r = cindex.conf.lib.clang_Cursor_Evaluate(cursor)
    if not r:
        return None
    v = None
    if cindex.conf.lib.clang_EvalResult_getKind(r) == 1:
        v = cindex.conf.lib.clang_EvalResult_getAsInt(r)
    cindex.conf.lib.clang_EvalResult_dispose(r)
    return v


def flat(text):
    """Text on one line, without comments."""
    return " ".join(COMMENT.sub(" ", text).split())


class Mutant:
    def __init__(self, file, function, line, start, end, op, old, new, code,
        context):
        self.file, self.function, self.line = file, function, line
        self.start, self.end, self.op = start, end, op
        self.old, self.new, self.code = old, new, code
        self.context = context
        self.number = 0
        self.nth = 0

    # What names a mutant in another version of the file.
    def key(self):
        return (self.file, self.function, self.context, self.old,
            self.new, self.nth)


class File:
    """A source file, with its mutants."""

    def __init__(self, name, path):
        self.name, self.path = name, path
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        # Offsets of the AST count bytes.
        if not self.text.isascii():
            raise SystemExit(f"{name}: not ASCII")
        self.lines = self.text.split("\n")
        self.mutants = {}
        self.unmapped = set()
        self.dropped = set()

    def ordered(self):
        return sorted(self.mutants.values(),
            key=lambda m: (m.start, -m.end, m.code is not None, m.op,
            m.new))

    def number(self, first):
        """Number the mutants; return the next number."""
        seen = {}
        for m in self.ordered():
            k = (m.function, m.context, m.old, m.new)
            m.nth = seen.get(k, 0)
            seen[k] = m.nth + 1
            m.number = first
            first += 1
        return first

    def write(self, path, header, maximum):
        """Write the file with all its mutants."""
        ranges = []
        for m in self.ordered():
            r = ranges[-1] if ranges else None
            if r and r[:2] == (m.start, m.end) and \
                (r[2][0].code is None) == (m.code is None):
                r[2].append(m)
            else:
                ranges.append((m.start, m.end, [m]))
        out = []
        self._emit(ranges, 0, len(self.text), out)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#define\tMUTANT_MAX\t{maximum}\n"
                f"#include \"{header}\"\n"
                f"#line 1 \"{self.path}\"\n")
            f.write("".join(out))

    def _emit(self, ranges, start, end, out):
        at = start
        while ranges:
            s, e, ms = ranges[0]
            if s >= end:
                break
            ranges.pop(0)
            out.append(self.text[at:s])
            if ms[0].code is None:
                for m in ms:
                    out.append(f"if (MUTANT({m.number})) ; else ")
                self._emit(ranges, s, e, out)
            else:
                out.append("(")
                for m in ms:
                    out.append(f"MUTANT({m.number}) ? "
                        f"({m.code}) : ")
                out.append("(")
                self._emit(ranges, s, e, out)
                out.append("))")
            at = e
        out.append(self.text[at:end])


class Finder:
    """Finds the mutants of one translation unit."""

    def __init__(self, files, args):
        self.files = files	# path -> File
        self.args = args

    def run(self, source):
        index = cindex.Index.create()
        tu = index.parse(source, self.args, options=
            cindex.TranslationUnit.PARSE_DETAILED_PROCESSING_RECORD)
        bad = [d for d in tu.diagnostics if d.severity >= 3]
        if bad:
            raise SystemExit(f"{source}: {bad[0]}")
        self.macros = {p: {} for p in self.files}
        for c in tu.cursor.get_children():
            if c.kind != K.MACRO_INSTANTIATION:
                continue
            r = self.range(c)
            if r is not None:
                self.macros[r[0].path][r[1]] = (r[2],
                    c.spelling)
        for c in tu.cursor.get_children():
            if c.kind != K.FUNCTION_DECL or not c.is_definition():
                continue
            r = self.range(c)
            if r is None:
                continue
            self.function = c.spelling
            self.returns = c.result_type.get_canonical().kind
            for b in c.get_children():
                if b.kind == K.COMPOUND_STMT:
                    self.parents = []
                    self.ending = self.last(c, b)
                    self.visit(b)

    @staticmethod
    def last(function, body):
        """The last statement of a function that does not return.  It cannot
        be left out: the compiler knows that nothing is behind it."""
        if "noreturn" not in function.type.spelling:
            return []
        return list(body.get_children())[-1:]

    def location(self, loc):
        file = cindex.c_object_p()
        line, col, off = (ctypes.c_uint(), ctypes.c_uint(),
            ctypes.c_uint())
        cindex.conf.lib.clang_getFileLocation(loc, ctypes.byref(file),
            ctypes.byref(line), ctypes.byref(col), ctypes.byref(off))
        return (cindex.File(file).name if file else None, off.value)

    def range(self, cursor):
        """(File, start, end), or None if that is in another file."""
        name, s = self.location(cursor.extent.start)
        name2, e = self.location(cursor.extent.end)
        if name != name2 or name not in self.files or s >= e:
            return None
        return (self.files[name], s, e)

    def around(self, file, s, e):
        """The macros whose uses overlap the range."""
        return [(ms, me, n) for ms, (me, n) in
            self.macros[file.path].items() if ms < e and me > s]

    def mappable(self, file, s, e):
        for ms, me, name in self.around(file, s, e):
            if ms <= s and e <= me:
                if UNMUTATED.match(name):
                    return False
                # An argument, or the whole use.
                if (s, e) != (ms, me) and (s == ms or e == me):
                    return False
            elif not (s <= ms and me <= e):
                return False
        t = file.text[s:e]
        return re.search(r"^\s*#", t, re.M) is None and "//" not in t

    def add(self, r, op, new, code=None, show=None):
        file, s, e = r
        if not self.mappable(file, s, e):
            file.unmapped.add((s, e))
            return
        line = file.text.count("\n", 0, s) + 1
        old = flat(file.text[s:e])
        if code is not None:
            code = flat(code)
        k = (s, e, op, new)
        if k in file.dropped:
            return
        file.mutants[k] = Mutant(file.name, self.function, line, s, e,
            op, old, flat(new), code,
            flat(file.lines[line - 1]))

    def replace(self, cursor, op, new, code=None):
        r = self.range(cursor)
        if r is not None:
            self.add(r, op, new, code or new)

    def text(self, cursor):
        r = self.range(cursor)
        return r[0].text[r[1]:r[2]] if r else ""

    # Names and literals, through parentheses and casts.
    def strip(self, c):
        while c.kind in (K.PAREN_EXPR, K.UNEXPOSED_EXPR,
            K.CSTYLE_CAST_EXPR):
            kids = [k for k in c.get_children()
                if k.kind.is_expression()]
            if len(kids) != 1:
                break
            c = kids[0]
        return c

    def constant(self, c):
        """Is it made of literals only?"""
        if c.kind in (K.DECL_REF_EXPR, K.CALL_EXPR, K.MEMBER_REF_EXPR,
            K.ARRAY_SUBSCRIPT_EXPR, K.STRING_LITERAL):
            return (c.kind == K.DECL_REF_EXPR and c.referenced and
                c.referenced.kind == K.ENUM_CONSTANT_DECL)
        return all(self.constant(k) for k in c.get_children())

    def between(self, a, b):
        ra, rb = self.range(a), self.range(b)
        if ra is None or rb is None or ra[0] is not rb[0] or \
            ra[2] > rb[1]:
            return None
        return COMMENT.sub("", ra[0].text[ra[2]:rb[1]]).strip()

    def unmutated_call(self, c):
        s = self.strip(c)
        r = self.range(c)
        m = self.macros[r[0].path].get(r[1]) if r else None
        if m is not None and UNMUTATED.match(m[1]):
            return True
        return s.kind == K.CALL_EXPR and \
            UNMUTATED_CALLS.search(s.spelling) is not None

    def condition(self, c, loop):
        if self.constant(c):
            return
        text = self.text(c)
        if not loop:
            self.replace(c, "condition", "true", "1")
        self.replace(c, "condition", "false", "0")

    def delete(self, c):
        """A statement, if it is one that can be left out."""
        if c.kind not in STATEMENTS or c in self.ending:
            return
        r = self.range(c)
        if r is None:
            return
        if c.kind == K.DO_STMT:
            m = self.macros[r[0].path].get(r[1])
            if m is None or m[0] != r[2]:
                return
        s = self.strip(c)
        if self.unmutated_call(c):
            return
        if flat(r[0].text[r[1]:r[2]]).startswith("(void)") and \
            s.kind != K.CALL_EXPR:
            return
        self.add(r, "delete", "", None)

    def body(self, c):
        """A loop's.  Without `continue' an empty one does the same."""
        if c.kind != K.CONTINUE_STMT:
            self.delete(c)

    def visit(self, c):
        k = c.kind
        kids = list(c.get_children())

        if k in (K.CXX_UNARY_EXPR, K.TYPEDEF_DECL, K.STRUCT_DECL,
            K.UNION_DECL, K.ENUM_DECL, K.STRING_LITERAL, K.ASM_STMT,
            K.FUNCTION_DECL):
            return
        r = self.range(c)
        if r is not None and k.is_expression():
            m = self.macros[r[0].path].get(r[1])
            if m is not None and m[0] == r[2]:
                if UNMUTATED.match(m[1]):
                    return
                if m[1].isidentifier() and \
                    r[0].text[r[1]:r[2]] == m[1]:
                    self.macro_constant(c, m[1])
                    return
        if k == K.CALL_EXPR and UNMUTATED_CALLS.search(c.spelling):
            return

        if k == K.COMPOUND_STMT:
            for s in kids:
                self.delete(s)
        elif k in (K.IF_STMT, K.CONDITIONAL_OPERATOR):
            # It decides about a message only.
            if k == K.IF_STMT and len(kids) == 2 and \
                self.unmutated_call(kids[1]):
                return
            if self.whole(c):
                self.condition(kids[0], False)
            if k == K.IF_STMT:
                for s in kids[1:]:
                    self.delete(s)
        elif k == K.WHILE_STMT:
            if self.whole(c):
                self.condition(kids[0], True)
            self.body(kids[-1])
        elif k == K.DO_STMT:
            if self.whole(c):
                self.condition(kids[-1], True)
            self.body(kids[0])
        elif k == K.FOR_STMT:
            cond = self.for_condition(c, kids)
            if cond is not None:
                self.condition(cond, True)
            self.body(kids[-1])
        elif k == K.CASE_STMT:
            self.delete(kids[-1])
            kids = kids[1:]
        elif k in (K.DEFAULT_STMT, K.LABEL_STMT):
            self.delete(kids[-1])
        elif k == K.VAR_DECL:
            kids = self.initializer(c, kids)
        elif k == K.RETURN_STMT:
            self.returned(c, kids)
        elif k == K.BINARY_OPERATOR and len(kids) == 2:
            self.binary(c, kids)
        elif k == K.COMPOUND_ASSIGNMENT_OPERATOR and len(kids) == 2:
            self.assignment(c, kids)
        elif k == K.UNARY_OPERATOR and len(kids) == 1:
            self.unary(c, kids[0])
        elif k == K.INTEGER_LITERAL:
            self.literal(c)

        if k not in (K.PAREN_EXPR, K.UNEXPOSED_EXPR,
            K.CSTYLE_CAST_EXPR):
            self.parents.append((c, kids))
        for kid in kids:
            self.visit(kid)
        if k not in (K.PAREN_EXPR, K.UNEXPOSED_EXPR,
            K.CSTYLE_CAST_EXPR):
            self.parents.pop()

    def operator(self):
        """The operator that the cursor is an operand of."""
        if not self.parents:
            return ""
        c, kids = self.parents[-1]
        if c.kind == K.CALL_EXPR:
            return "()"
        if c.kind == K.UNARY_OPERATOR:
            return self.text(c)[:1]
        if len(kids) != 2 or c.kind not in (K.BINARY_OPERATOR,
            K.COMPOUND_ASSIGNMENT_OPERATOR):
            return ""
        return self.between(*kids) or ""

    def is_compared_with_zero(self):
        return self.operator() in ("==", "!=") and \
            flat(self.text(self.parents[-1][1][1])) in ("0", "NULL")

    def whole(self, c):
        """Not the body of a macro."""
        r = self.range(c)
        return r is not None and r[1] not in self.macros[r[0].path]

    def for_condition(self, c, kids):
        r = self.range(c)
        if r is None or not self.whole(c) or len(kids) < 2:
            return None
        file, s, e = r
        body = self.range(kids[-1])
        if body is None:
            return None
        semis = []
        depth = 0
        head = file.text[s:body[1]]
        head = COMMENT.sub(lambda m: " " * len(m.group()), head)
        for i, ch in enumerate(head):
            if ch == "(":
                depth += 1
            elif ch == ")":
                depth -= 1
            elif ch == ";" and depth == 1:
                semis.append(s + i)
        if len(semis) != 2:
            return None
        for kid in kids[:-1]:
            q = self.range(kid)
            if q and semis[0] < q[1] and q[2] <= semis[1]:
                return kid
        return None

    def initializer(self, c, kids):
        if c.storage_class == cindex.StorageClass.STATIC:
            return []
        r = self.range(c)
        if r is None:
            return []
        eq = r[0].text.find("=", r[1], r[2])
        if eq < 0:
            return []
        found = []
        for kid in kids:
            q = self.range(kid)
            if q is not None and q[1] > eq:
                found.append(kid)
        return found

    def returned(self, c, kids):
        if not kids:
            r = self.range(c)
            if r is not None:
                self.add(r, "delete", "")
            return
        e = kids[0]
        s = self.strip(e)
        if self.constant(s):
            return
        t = self.text(e)
        if self.returns == T.BOOL:
            if s.kind != K.UNARY_OPERATOR:
                self.replace(e, "return", f"!{t}",
                    f"!({t})")
        elif self.returns == T.POINTER or self.returns in INTEGERS:
            self.replace(e, "return", "0", "0")

    def binary(self, c, kids):
        op = self.between(*kids)
        if op is None:
            r = self.range(c)
            if r:
                r[0].unmapped.add(r[1:])
            return
        a, b = (self.text(k) for k in kids)
        ta, tb = (k.type.get_canonical().kind for k in kids)

        def put(kind, new, code=None):
            self.replace(c, kind, new, code)

        if op in RELATIONS:
            for o in RELATIONS[op]:
                put("boundary", f"{a} {o} {b}")
            if not self.is_condition(c):
                put("negate", f"{a} {NEGATIONS[op]} {b}")
        elif op in ARITHMETIC:
            if T.POINTER in (ta, tb):
                if ta == tb or op != "+" and op != "-":
                    return
                if tb == T.POINTER:
                    return
            put("arithmetic", f"{a} {ARITHMETIC[op]} {b}")
        elif op in BITS:
            # The whole is true then, which is another mutant.
            if op != "&" or not self.is_compared_with_zero():
                put("bits", f"{a} {BITS[op]} {b}")
        elif op in ("&&", "||"):
            put("logic", f"{a} {'||' if op == '&&' else '&&'} {b}")
            put("logic", a, f"!!({a})")
            put("logic", b, f"!!({b})")

    def is_condition(self, c):
        r = self.range(c)
        return r is not None and (r[1], r[2], "condition", "false") in \
            r[0].mutants

    def assignment(self, c, kids):
        op = self.between(*kids)
        if op not in ASSIGNMENTS:
            return
        a, b = (self.text(k) for k in kids)
        if kids[0].type.get_canonical().kind == T.POINTER and \
            op not in ("+=", "-="):
            return
        if kids[0].type.get_canonical().kind == T.VECTOR:
            return
        self.replace(c, "assign", f"{a} {ASSIGNMENTS[op]} {b}")

    def unary(self, c, kid):
        r, q = self.range(c), self.range(kid)
        if r is None or q is None:
            return
        t = r[0].text
        x = t[q[1]:q[2]]
        before, after = t[r[1]:q[1]].strip(), t[q[2]:r[2]].strip()
        if before == "!":
            if not self.is_condition(c):
                self.replace(c, "unary", x, f"!!({x})")
        elif before in ("-", "~"):
            if self.strip(kid).kind != K.INTEGER_LITERAL:
                self.replace(c, "unary", x)
        elif before in ("++", "--"):
            o = "--" if before == "++" else "++"
            self.replace(c, "unary", o + x)
        elif after in ("++", "--"):
            o = "--" if after == "++" else "++"
            self.replace(c, "unary", x + o)

    def literal(self, c):
        r = self.range(c)
        if r is None:
            return
        t = r[0].text[r[1]:r[2]]
        m = re.match(r"^(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)$", t)
        if m is None:
            r[0].unmapped.add(r[1:])
            return
        if t == "0" and self.is_compared_with_zero():
            return
        n = int(m.group(1), 0 if m.group(1)[:2].lower() == "0x" else
            8 if m.group(1)[0] == "0" and m.group(1) != "0" else 10)
        for v in ((n + 1, n - 1) if n > 0 else (1,)):
            new = (hex(v) if "x" in t.lower() else str(v)) + \
                m.group(2)
            self.replace(c, "constant", new)

    def macro_constant(self, c, name):
        if name in ("NULL", "true", "false", "errno", "MAP_FAILED",
            "__func__", "INT_MAX"):
            if name in ("true", "false"):
                self.replace(c, "constant",
                    "false" if name == "true" else "true")
            return
        if c.type.get_canonical().kind not in INTEGERS or \
            not self.constant(c):
            return
        if value(c) != 0:
            self.replace(c, "constant", "0")
        # The next bit, the next register, the next number.
        op = self.operator()
        if op in ("&", "|", "~", "&=", "|="):
            new = "<< 1"
            if value(c) == 0:
                return
        elif op == "()":
            new = "+ 4"
        else:
            new = "+ 1"
        self.replace(c, "constant", f"{name} {new}", f"({name}) {new}")


def resource_dir(cc="clang"):
    return subprocess.run([cc, "-print-resource-dir"], check=True,
        capture_output=True, text=True).stdout.strip()
