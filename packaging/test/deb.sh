#!/bin/sh
# The packages for Debian, as TAP: packaging/test/deb.sh [FOLDER]. They are built (or taken from FOLDER), read by
# lintian, installed into a clean root over older ones, used there, and removed. The root is a small system that
# mmdebstrap makes.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=$PWD/target/deb-test packages=${1:-} root=$PWD/target/deb-test/root
rm -rf "$out" && mkdir -p "$out" || exit 1

. mk/tap.sh
end() { rm -rf "$root"; echo "1..$n"; exit; }

for tool in dh dpkg-buildpackage dh_nginx; do
    have $tool || { skip 'the packages are built' "no $tool: apt-get install debhelper dpkg-dev nginx-dev"; end; }
done
if [ "$packages" ]; then check 'the packages are there' ls "$packages"/libtatcell1_*.deb
else
    packages=$out/packages && mkdir "$packages"
    check 'the packages are built' packaging/release/deb.sh "$packages"
fi
if have lintian; then check 'lintian finds no error' lintian --allow-root --fail-on error "$packages"/*.deb
else skip 'lintian finds no error' 'no lintian: apt-get install lintian'; fi

# What a package of a program that uses the library would depend on.
depends() {
    lib=$out/unpacked/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
    for one in libtatcell1 libtatcell-dev; do dpkg-deb -x "$packages/$one"_*.deb "$out/unpacked" || return 1; done
    sed -n '/^TATCELL_0/,$s/^ *\(tatcell_[a-z0-9_]*\);/void \1(void); int main(void) { \1(); return 0; }/p' \
        include/tatcell.map | head -n 1 > "$out/newer.c"
    mkdir -p "$out/program/debian" && printf 'Source: program\n\nPackage: program\nArchitecture: any\n' \
        > "$out/program/debian/control" && dpkg-deb -I "$packages"/libtatcell1_*.deb symbols > "$out/symbols" &&
        cc "$out/newer.c" "$lib/libtatcell.so" -o "$out/program/newer" || return 1
    mkdir -p "$out/unpacked/DEBIAN" && cp "$out/symbols" "$out/unpacked/DEBIAN/symbols" &&
        (cd "$out/program" && dpkg-shlibdeps -O -S"$out/unpacked" newer) | grep -F 'libtatcell1 (>= 0.4.0~)'
}
check 'a program that needs a new function depends on the package that has it' depends
notices() {
    for one in "$packages"/*.deb; do
        dpkg-deb -c "$one" | grep -q '/usr/share/doc/[^/]*/THIRD-PARTY' || { echo "$one has none"; return 1; }
    done
}
check 'each package has the licences of the crates in it' notices

[ "$(id -u)" = 0 ] || { skip 'a clean root' 'only root may change its root: sudo packaging/test/deb.sh'; end; }
have mmdebstrap || { skip 'a clean root' 'no mmdebstrap: apt-get install mmdebstrap'; end; }
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
if ! mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config,procps,nginx-light "$suite" "$root" > "$out/root.log" 2>&1
then
    if grep -qE 'Temporary failure|Could not (connect|resolve)|Connection (refused|timed out)' "$out/root.log"; then
        skip 'a clean root' 'no archive of Debian: mmdebstrap needs the network'
    else check 'mmdebstrap makes a clean root' fails cat "$out/root.log"; fi
    end
fi
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
# All that the root has but the records of dpkg and apt.
files() {
    (cd "$root" && find . -path ./proc -prune -o -path ./tmp -prune -o -path ./run -prune -o -path ./var/lib/dpkg -prune -o \
        -path ./var/lib/apt -prune -o -path ./var/cache -prune -o -path ./var/log -prune -o -print | sort)
}
version() { [ "$(inside "$1" --version)" = "$1 $(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)" ]; }
# The programs of the other package tests, built from what the package for development says.
builds() {
    cp packaging/test/main.c "$root/tmp" && inside sh -c 'cd /tmp &&
        cc -Wall -Wextra -Werror main.c $(pkg-config --cflags --libs tatcell) -o shared && ./shared &&
        cc -Wall -Wextra -Werror -static main.c $(pkg-config --cflags --libs --static tatcell) -o alone && ./alone'
}
serves() {
    printf '%s\n' 'load_module modules/ngx_http_tatcell_module.so;' 'events {}' \
        'http { tatcell_zone $binary_remote_addr zone=clients:1m rate=1r/m burst=20;
                server { listen 127.0.0.1:'"$port"'; location / { tatcell zone=clients nodelay; } } }' > "$root/tmp/nginx.conf"
    # Its package loads the module; with a configuration of its own it limits: a client of the loopback address, which the
    # root shares with this machine.
    [ -L "$root/etc/nginx/modules-enabled/50-mod-http-tatcell.conf" ] && inside nginx -t &&
        inside nginx -c /tmp/nginx.conf || return 1
    python3 - "$port" << 'END'
import http.client, sys
seen = []
for _ in range(100):
    client = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=10)
    client.request('GET', '/')
    seen.append(client.getresponse().status)
    if seen[-1] != 200:
        break
print(seen)
assert seen[:20] == [200] * 20 and seen[-1] in (429, 503), seen
END
    status=$?
    inside nginx -c /tmp/nginx.conf -s stop && return $status
}
# The server answers a call as the README of the cluster shows: limited, limit, what is left, and two times. It has the
# settings of its package, at an address that is free here.
throttles() {
    chroot "$root" /usr/bin/tatcell-throttled --config /etc/tatcell/throttled.toml --listen "127.0.0.1:$port" \
        --metrics 127.0.0.1:0 &
    server=$!
    python3 - "$port" << 'END'
import socket, sys, time
for attempt in range(100):
    try:
        client = socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=10)
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
lines = client.makefile('rw', newline='\r\n')
answers = []
for _ in range(3):
    print('CL.THROTTLE user 1 1 60', file=lines, flush=True)
    answers.append([int(lines.readline().lstrip('*:')) for _ in range(6)])
print(answers)
assert [answer[1] for answer in answers] == [0, 0, 1] and answers[2][4] > 0, answers
END
    status=$?
    kill "$server"
    wait "$server" 2> /dev/null
    return $status
}
# Nobody's limits run before an administrator has written them.
rests() { [ -z "$(find "$root/etc/systemd/system" -name 'tatcell-*')" ]; }
# The same packages with a lower number, another setting, and a file that the new ones do not have.
older() {
    mkdir -p "$root/tmp/older" || return 1
    for one in "$packages"/*.deb; do
        rm -rf "$out/older" && dpkg-deb -R "$one" "$out/older" &&
            sed -i "s/$debian_version/0.3.0/" "$out/older/DEBIAN/control" && echo old > "$out/older/usr/share/tatcell-old-$(
                dpkg-deb -f "$one" Package)" || return 1
        for setting in "$out"/older/etc/tatcell/*; do [ ! -f "$setting" ] || echo '# 0.3.0' >> "$setting" || return 1; done
        dpkg-deb --root-owner-group -Zgzip -b "$out/older" "$root/tmp/older" || return 1
    done
    inside sh -c 'apt-get -q -y --no-install-recommends install /tmp/older/*.deb' && states 0.3.0
}
# states VERSION: all packages are there, and whole, in this version.
states() {
    inside dpkg-query -W -f '${db:Status-Abbrev}${Version} ${Package}\n' 'tatcell*' 'libtatcell*' libnginx-mod-http-tatcell |
        tee "$out/states"
    [ "$(grep -c "^ii $1 " "$out/states")" = 6 ]
}
# What an administrator wrote stays; settings that nobody touched are the new ones.
upgraded() {
    sed -i 's/^keys = .*/keys = 4242/; /0.3.0/d' "$root/etc/tatcell/throttled.toml" && cp "$packages"/*.deb "$root/tmp" &&
        inside sh -c 'apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-confold install /tmp/*.deb' &&
        states "$debian_version" && [ -z "$(find "$root/usr/share" -name 'tatcell-old*')" ] &&
        grep -x 'keys = 4242' "$root/etc/tatcell/throttled.toml" && cmp cluster/envoy/ratelimit.toml "$root/etc/tatcell/ratelimit.toml"
}
again() {
    inside sh -c 'apt-get -q -y --no-install-recommends --reinstall install /tmp/*.deb' && states "$debian_version" || return 1
    inside dpkg --verify > "$out/changed"
    ! grep -v ' c ' "$out/changed" | grep tatcell
}
pages() {
    # dpkg leaves no page out of this root, so each command that help lists has one.
    for command in $(inside tatcell help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | grep -vx help); do
        gzip -t "$root/usr/share/man/man1/tatcell-$command.1.gz" || return 1
    done
    [ "${command:-}" ] && gzip -t "$root/usr/share/man/man1/tatcell.1.gz"
}
units() {
    for server in tatcell-throttled tatcell-ratelimit; do
        systemd-analyze --root="$root" --recursive-errors=no verify "$server.service" || return 1
    done
    inside tatcell-ratelimit --config /etc/tatcell/ratelimit.toml --check true
}
# One package goes, and takes no file of another.
alone() {
    inside apt-get -q -y purge tatcell-throttled libtatcell-dev && [ ! -e "$root/etc/tatcell/throttled.toml" ] &&
        [ ! -e "$root/usr/include/tatcell.h" ] && [ -f "$root/etc/tatcell/rules.yaml" ] && version tatcell-ratelimit &&
        [ -e "$root/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/libtatcell.so.1" ]
}
# Without the module nginx starts, also while its settings are there.
removed() {
    inside apt-get -q -y remove 'tatcell*' 'libtatcell*' libnginx-mod-http-tatcell && inside nginx -t &&
        [ -f "$root/etc/tatcell/rules.yaml" ]
}
gone() {
    inside dpkg --purge tatcell tatcell-ratelimit libtatcell1 libnginx-mod-http-tatcell && inside nginx -t &&
        files > "$out/after" && diff "$out/before" "$out/after"
}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
debian_version=$(dpkg-deb -f "$packages"/libtatcell1_*.deb Version)
# nginx makes its folders when it first reads its settings.
inside nginx -t > "$out/log" 2>&1
files > "$out/before"
check 'apt-get installs older ones into a clean root' older
check 'an upgrade takes all of them, and keeps what an administrator wrote' upgraded
check 'installed again, they are whole' again
for program in tatcell tatcell-throttled tatcell-ratelimit; do check "$program runs" version "$program"; done
check 'a program is built with libtatcell-dev' builds
check 'tatcell-throttled limits a client' throttles
check 'nginx limits a client by the module' serves
check 'each command of tatcell has a man page' pages
if have systemd-analyze; then check 'systemd takes the units, and the servers their settings' units
else skip 'systemd takes the units' 'no systemd-analyze: apt-get install systemd'; fi
check 'no server was started or enabled' rests
check 'a package that goes takes nothing of another' alone
check 'removed, they leave their settings, and nginx starts' removed
check 'purged, they leave nothing' gone
end
