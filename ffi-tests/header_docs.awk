# The comment above every function of a C header: a first sentence; each @param in order; @retval or @return; Thread,
# Cost and Since; names of the library that exist. Every constant and field has a comment above it, too.
#
#     awk -f header_docs.awk HEADERS... check=HEADER HEADER
#
# reads the HEADERS for the names that exist, then checks HEADER. Prints a line for each thing that is missing.
function bad(what) { print what; failures++ }

# Finds the next match of `pattern` in `rest`, which then begins behind it.
function next_match(pattern) {
    if (!match(rest, pattern)) return 0
    found = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    return 1
}

function check_function(declaration, doc,    name, returns, arguments, n, i, list, wanted, given, text, code) {
    name = declaration
    sub(/\(.*/, "", name)
    returns = name
    sub(/^.*[^a-z0-9_]/, "", name)
    returns = substr(returns, 1, length(returns) - length(name))
    gsub(/ +$/, "", returns)
    arguments = declaration
    sub(/^[^(]*\(/, "", arguments)
    sub(/\).*/, "", arguments)
    wanted = given = ""
    n = split(arguments, list, ",")
    for (i = 1; i <= n; i++) {
        sub(/^.*[^A-Za-z0-9_]/, "", list[i])
        if (list[i] != "void") wanted = wanted " " list[i]
    }
    text = doc
    sub(/^[ \n]+/, "", text)
    if (text !~ /^[A-Z][^@]*\./) bad(name ": no first sentence")
    rest = doc
    while (next_match("@param +[A-Za-z0-9_]+")) { sub(/@param +/, "", found); given = given " " found }
    if (wanted != given) bad(name ": its parameters are" wanted ", documented are" given)
    if (returns == "int32_t" && doc !~ /@retval/) bad(name ": no @retval")
    if (returns != "int32_t" && returns != "void" && doc !~ /@return/) bad(name ": no @return")
    rest = doc
    while (next_match("@retval +[^ \n]+")) {
        code = found
        sub(/@retval +/, "", code)
        sub(/,$/, "", code)
        if (code !~ /^(0|others|as|a)$/ && !(code in names)) bad(name ": @retval " code " is no code")
    }
    rest = doc
    while (next_match("TATCELL_[A-Z0-9_]*[A-Z0-9]"))
        if (!(found in names) && !(found in families)) bad(name ": " found " does not exist")
    rest = doc
    while (next_match("tatcell_[a-z0-9_]+")) {
        # A word that other comments have, too, or code.
        if (words[found] <= words_in(doc, found)) bad(name ": " found " does not exist")
    }
    if (doc !~ /Thread: /) bad(name ": no Thread:")
    if (doc !~ /Cost: /) bad(name ": no Cost:")
    if (doc !~ /Since /) bad(name ": no Since")
}

# How often a word stands in a text.
function words_in(text, word,    kept, count) {
    kept = rest
    rest = text
    while (next_match("tatcell_[a-z0-9_]+")) if (found == word) count++
    rest = kept
    found = word
    return count
}

# The first pass: names of constants, with the families that they begin with, and how often each word stands anywhere.
check == "" {
    if (/^#define TATCELL_/) {
        name = $2
        sub(/\(.*/, "", name)
        names[name] = 1
        while (sub(/_[A-Z0-9]*$/, "", name) && name != "") families[name] = 1
    }
    rest = $0
    while (next_match("tatcell_[a-z0-9_]+")) words[found]++
    next
}

# The second pass.
{ line = $0; sub(/TATCELL_NODISCARD /, "", line) }
line == "TATCELL_API" || line == "TATCELL_NODISCARD" { next }
length(line) > 120 { bad("line " FNR " is longer than 120") }

(/^#define TATCELL_[A-Z0-9]/ && !/_H$/ && !/\(n\)|ASSERT_|ALIGNOF_|TATCELL_(API|NODISCARD)( |$)/ || /^    (const )?[a-z0-9_]+ \**[a-z0-9_]+(\[[0-9]+\])?;$/) &&
    previous !~ /\*\/ *$/ { bad("no comment above: " $0) }
{ previous = $0 }

# A comment, and behind it a declaration, which may have several lines.
/^\/\*\*/ { doc = ""; inside = 1; sub(/^\/\*\* */, "", line) }
inside {
    ended = sub(/ *\*\/.*/, "", line)
    sub(/^ \* ?/, "", line)
    doc = doc line "\n"
    if (ended) { inside = 0; documented = 1 }
    next
}
!declared && /^[A-Za-z0-9_ ]+[ *]+tatcell_[a-z0-9_]+\(/ && !/^(static|typedef|#)/ { declared = 1; declaration = "" }
declared {
    declaration = declaration line
    if (line ~ /;/) {
        functions++
        if (documented) check_function(declaration, doc)
        else bad("no comment above: " declaration)
        declared = documented = 0
    }
    next
}
{ documented = 0 }
END {
    if (!functions) bad("no function found")
    exit failures > 0
}
