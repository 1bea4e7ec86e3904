#!/usr/bin/env python3
"""Checks the doc block of every function in tatcell.h: purpose, each @param in order, @retval or @return, Thread,
Cost, Since; and every constant and field for a comment. Prints what is missing; exit status 1 then."""
import re
import sys

text = open(sys.argv[1], encoding="utf-8").read()
# What else the comments may name.
more = "".join(open(path, encoding="utf-8").read() for path in sys.argv[2:] + ["include/tatcell_host.h"])
# Attributes of functions stand before them.
text = re.sub(r"^(TATCELL_NODISCARD )?TATCELL_API\n", "", text, flags=re.M)
bad = []
names = set(re.findall(r"\b(TATCELL_[A-Z0-9_]+)\b", "\n".join(re.findall(r"#define (TATCELL_\w+)", text + more))))
functions = 0
for doc, ret, name, args in re.findall(r"/\*\*((?:(?!\*/).)*)\*/\n([\w ]+?\**) ?\b(tatcell_\w+)\(([^)]*)\);", text, re.S):
    functions += 1
    lines = [re.sub(r"^ \* ?", "", l) for l in doc.strip("\n").split("\n")]
    body = "\n".join(lines)
    say = lambda what: bad.append(f"{name}: {what}")
    if not re.match(r"[A-Z][^@]*\.", body.strip()):
        say("no first sentence")
    want = [re.search(r"(\w+)$", a.strip()).group(1) for a in args.split(",") if a.strip() != "void"]
    got = re.findall(r"@param +(\w+)", body)
    if want != got:
        say(f"parameters {want}, documented {got}")
    status = ret.strip() == "int32_t"
    if status and "@retval" not in body:
        say("no @retval")
    if not status and ret.strip() != "void" and "@return" not in body:
        say("no @return")
    for retval in re.findall(r"@retval +(\S+)", body):
        code = retval.rstrip(",")
        if code not in ("0", "others", "as", "a") and code not in names:
            say(f"@retval {code} is no code")
    for word in re.findall(r"\bTATCELL_[A-Z0-9_]*[A-Z0-9]\b", body):
        if word not in names and not any(n.startswith(word + "_") for n in names):
            say(f"{word} does not exist")
    for word in re.findall(r"\btatcell_[a-z0-9_]+\b", body):
        if word not in text.replace(doc, "") + more:
            say(f"{word} does not exist")
    for part in ("Thread: ", "Cost: ", "Since "):
        if part not in body:
            say(f"no '{part.strip()}'")
    if max(map(len, doc.split("\n"))) > 120:
        say("a line is longer than 120")
declared = len(re.findall(r"^[\w ]+?\**\b ?\**tatcell_\w+\(", text, re.M))
if functions != declared or functions == 0:
    bad.append(f"{declared} functions are declared, {functions} have a doc block")
previous = ""
for line in text.split("\n"):
    inner = any(word in line for word in ("(n)", "ASSERT_", "ALIGNOF_", "TATCELL_API", "TATCELL_NODISCARD"))
    if re.match(r"#define TATCELL_[A-Z0-9]", line) and not re.match(r"#define TATCELL_(HOST_)?H$", line) and not inner:
        if not previous.strip().endswith("*/"):
            bad.append(f"no comment above: {line}")
    if re.match(r"    (const )?[\w]+ \**\w+(\[\d+\])?;$", line) and not previous.strip().endswith("*/"):
        bad.append(f"no comment above: {line.strip()}")
    previous = line
print("\n".join(bad))
sys.exit(bool(bad))
