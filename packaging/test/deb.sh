#!/bin/sh
# The packages for Debian, as TAP: packaging/test/deb.sh [FOLDER]. They are built (or taken from FOLDER), read by
# lintian, installed into a clean root, used there, and removed. The root is a small system that mmdebstrap makes.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=$PWD/target/deb-test packages=${1:-} root=$PWD/target/deb-test/root
rm -rf "$out" && mkdir -p "$out" || exit 1

. mk/tap.sh
end() { rm -rf "$root"; echo "1..$n"; exit; }

have dh || { skip 'the packages are built' 'no debhelper: apt-get install debhelper dpkg-dev nginx-dev'; end; }
if [ -z "$packages" ]; then
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
if ! mmdebstrap --quiet --variant=apt --include=gcc,libc6-dev,pkg-config,nginx-light "$suite" "$root" > "$out/root.log" 2>&1
then
    if grep -qE 'Temporary failure|Could not (connect|resolve)|Connection (refused|timed out)' "$out/root.log"; then
        skip 'a clean root' 'no archive of Debian: mmdebstrap needs the network'
    else check 'mmdebstrap makes a clean root' fails cat "$out/root.log"; fi
    end
fi
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"; }
files() { (cd "$root" && find etc lib usr var/lib -iname '*tatcell*' ! -path 'var/lib/dpkg/*'); }
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
# The server answers a call as the README of the cluster shows: limited, limit, what is left, and two times.
throttles() {
    chroot "$root" /usr/bin/tatcell-throttled --listen "127.0.0.1:$port" &
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
gone() {
    inside apt-get -q -y purge 'tatcell*' 'libtatcell*' libnginx-mod-http-tatcell && files > "$out/left" && [ ! -s "$out/left" ] ||
        { cat "$out/left"; return 1; }
}
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cp "$packages"/*.deb "$root/tmp"
check 'apt-get installs them into a clean root' inside sh -c 'apt-get -q -y --no-install-recommends install /tmp/*.deb'
for program in tatcell tatcell-throttled tatcell-ratelimit; do check "$program runs" version "$program"; done
check 'a program is built with libtatcell-dev' builds
check 'tatcell-throttled limits a client' throttles
check 'nginx limits a client by the module' serves
check 'no server was started or enabled' rests
check 'removed, they leave nothing' gone
end
