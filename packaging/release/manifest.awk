# Turns the root manifest into that of a release: without tests and what only they need, and with no workspace members.
/^\[/ { skip = /^\[+(workspace|dev-dependencies|example|test|target.*\.dev-dependencies|profile\.(loom|test).*)\]/ }
# A comment and an empty line belong to what follows them.
/^(#|$)/ { held = held $0 "\n"; next }
!skip { printf "%s%s\n", held, $0 }
{ held = "" }
END { print "\n[workspace]" }
