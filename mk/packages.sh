#!/bin/sh
# Installs the Debian packages that the tests of a part use and this machine lacks: mk/packages.sh FILE...
#
# A FILE holds a package name a line; '#' begins a comment. Packages are installed only as root, where apt-get is there
# and TATCELL_NO_INSTALL is not set. Elsewhere one line says what is missing and how to get it; the tests that need it
# then skip. It never fails: a missing package is for the tests to report.
command -v dpkg-query > /dev/null || exit 0
missing=
for package in $(sed 's/#.*//' "$@"); do
    state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2> /dev/null)
    case $state in ii*) ;; *) missing="$missing $package" ;; esac
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || [ -n "$TATCELL_NO_INSTALL" ] || ! command -v apt-get > /dev/null; then
    echo "missing packages, so some tests will skip: apt-get install$missing"
    exit 0
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
options='-o DPkg::Lock::Timeout=300 -y -qq'
log=$(mktemp)
# A package that is not to be had must not keep the others away.
{ apt-get update -qq && apt-get install $options --no-install-recommends $missing; } > "$log" 2>&1 ||
    for package in $missing; do
        apt-get install $options --no-install-recommends "$package" > "$log" 2>&1 ||
            { echo "could not install $package:"; tail -n 2 "$log"; }
    done
rm -f "$log"
