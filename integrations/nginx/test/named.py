"""Tables and counters in named memory: who has a name when, and what others see there."""

import os
import pathlib
import shutil
import signal
import stat
import struct
import subprocess
import uuid

from claims import Skip, equal
from limits import stats
from reloads import conf, full, passed

SHM = pathlib.Path("/dev/shm")
SEED = "00112233445566778899aabbccddeeff"


class Memory:
    """A name of shared memory that no other test has, and what begins with it."""

    def __enter__(self):
        self.name = f"/tatcell-nginx-{os.getpid()}-{uuid.uuid4().hex}"
        self.file = SHM / self.name[1:]
        return self

    def __exit__(self, *_):
        for file in self.all():
            file.unlink(missing_ok=True)

    def all(self):
        return sorted(SHM.glob(self.name[1:] + "*"))

    def live(self):
        """Slots of a table that are not empty, behind the header of an image."""
        words = struct.unpack(f"={self.file.stat().st_size // 8}Q", self.file.read_bytes())
        equal(words[0].to_bytes(8, "big")[:6], b"tatcel", "magic:")
        return sum(word != 0 for word in words[16:])

    def owned(self):
        """Slots that a key has: their words have a tag, of 20 bits. Also an expired one, until a sweep."""
        words = struct.unpack(f"={self.file.stat().st_size // 8}Q", self.file.read_bytes())
        return sum(word >> 43 != 0 for word in words[16:])

    def inode(self):
        return self.file.stat().st_ino


def tool():
    """The command of this project, where it is built."""
    root = pathlib.Path(__file__).resolve().parents[3]
    built = [root / "cli/target" / kind / "tatcell" for kind in ("release", "debug")]
    found = next((str(file) for file in built if file.exists()), shutil.which("tatcell"))
    if found is None:
        raise Skip("the command tatcell is not built: make cli")
    return found


def upgrade(n):
    """Starts the new binary next to the old one; returns the number of the old master."""
    old = n.pid()
    os.kill(old, signal.SIGUSR2)
    new_pid = n.run / "nginx.pid"
    n.wait(lambda: (n.run / "nginx.pid.oldbin").exists() and new_pid.exists() and n.pid() != old and n.children())
    return old


def end(n, pid, how=signal.SIGQUIT):
    os.kill(pid, how)
    n.wait(lambda: not pathlib.Path(f"/proc/{pid}").exists())


def claims(claims, server):
    def shown():
        with Memory() as m, server() as n:
            n.start(**conf(more=f"table={m.name}"))
            equal([file.name for file in m.all()], [m.file.name])
            found = m.file.stat()
            equal((stat.S_IMODE(found.st_mode), found.st_size), (0o600, 256 * 1024))
            equal(m.live(), 0)
            equal(passed(n, 30, 3), 60)
            assert 28 <= m.live() <= 30, m.live()
            equal(stats(n)["a"]["live"], m.live())
            # A configuration is tested next to the server that has it.
            good, said = n.test(**conf(more=f"table={m.name}"))
            assert good, said
            equal((len(m.all()), m.live() > 0), (1, True))
            # It makes no counters either.
            good, said = n.test(**conf(more=f"table={m.name} counters={m.name}-counts"))
            equal((good, len(m.all())), (True, 1), said)
            n.stop()
            equal(m.all(), [], "after the end:")
    claims.claim("a_table_with_a_name_is_there_while_nginx_runs", shown)

    def operated():
        program = tool()

        def tatcell(*arguments):
            done = subprocess.run([program, "show", m.name, *arguments], capture_output=True, text=True, timeout=60)
            equal(done.returncode, 0, done.stderr)
            return done.stdout

        with Memory() as m, server() as n:
            n.run.joinpath("seed").write_text(SEED + "\n")
            seed = ("--seed-file", str(n.run / "seed"))
            more = f"table={m.name} seed={n.run}/seed counters={m.name}-counts"
            n.start(**conf(more=more, key="$binary_remote_addr", burst=3, rate="1r/h"))
            equal(n.statuses(5, "/page"), [200, 200, 200, 429, 429])
            assert "live" in tatcell(), tatcell()
            # Whose debt it is, to who has the seed.
            (n.run / "keys").write_text("192.0.2.1\n127.0.0.1\n")
            assert "127.0.0.1" in tatcell("top", "--candidates", str(n.run / "keys"), *seed), "no name"
            watched = tatcell("--counters", m.name + "-counts", "watch", "--rounds", "2", "--interval", "50ms")
            assert "3" in watched and watched.count("live") >= 2, watched
            tatcell("reset", "127.0.0.1", *seed)
            equal(n.statuses(4, "/page"), [200, 200, 200, 429])
            # A ban is for a table of overrides, and this one has debts.
            done = subprocess.run([program, "show", m.name, "ban", "127.0.0.1", "--for", "1h", *seed],
                                  capture_output=True, text=True)
            equal(done.returncode, 2, done.stderr)
    claims.claim("the_command_looks_at_a_table_that_runs_and_resets_a_key", operated)

    def reloaded():
        with Memory() as m, server() as n:
            n.start(**conf(more=f"table={m.name}"))
            first = full(n, 200)
            before = m.inode()
            assert n.reload(**conf(more=f"table={m.name}", burst=2)), n.log()
            equal(m.inode(), before, "the memory stays:")
            # A move takes the name with it, and none is left.
            assert n.reload(**conf(more=f"table={m.name}", size="512k")), n.log()
            assert m.inode() != before and m.live() > 190, m.live()
            equal((len(m.all()), m.file.stat().st_size, passed(n, 200, 1)), (1, 512 * 1024, 0))
            equal(stats(n)["a"]["passed"], first, "counts of before")
            # A configuration that is refused leaves it as it is.
            before = m.inode()
            for bad in conf(more=f"table={m.name} tag_bits=24", size="256k"), conf(more=f"table={m.name} policy=none"):
                assert not n.reload(**bad), "it was taken"
                equal((m.inode(), len(m.all())), (before, 1))
            # Somebody removed the name: the next reload gives it back.
            m.file.unlink()
            assert n.reload(**conf(more=f"table={m.name}", size="512k")), n.log()
            equal((len(m.all()), passed(n, 200, 1)), (1, 0))
            # Another name, none, and one again: the debts move each time.
            assert n.reload(**conf(more=f"table={m.name}-b", size="512k")), n.log()
            equal([file.name for file in m.all()], [m.file.name + "-b"])
            assert n.reload(**conf(size="512k")), n.log()
            equal((m.all(), passed(n, 200, 1)), ([], 0))
            assert n.reload(**conf(more=f"table={m.name}", size="512k")), n.log()
            equal((len(m.all()), passed(n, 200, 1)), (1, 0))
    claims.claim("a_name_follows_the_table_through_reloads", reloaded)

    def swept():
        # A slot is swept when it has been expired for the longest debt and the skew: here for less than a second.
        with Memory() as m, server() as n:
            n.start(workers=2, http=f"tatcell_zone $arg_k zone=a:96k rate=500mB/s burst=50000000 skew=500ms "
                                    f"table={m.name};",
                    server="location / { tatcell zone=a cost=5000000 nodelay; }")
            connection = n.connection()
            for i in range(300):
                equal(n.get(f"/page?k={i}", connection).status, 200)
            connection.close()
            # The last key has a slot, and only the timer sweeps: nothing else asks nginx.
            n.wait(lambda: m.owned() == 0, 30)
    claims.claim("a_table_is_swept_while_no_request_comes", swept)

    def renamed():
        def zones(**tables):
            return {"http": "".join(f"tatcell_zone $arg_k zone={zone}:256k rate=1r/h burst=2 table={name} "
                                    f"counters={name}-counts;" for zone, name in tables.items()),
                    "server": f"location / {{ tatcell zone={list(tables)[0]} nodelay; }} "
                              "location /stats { tatcell_stats top=0; }", "level": "notice"}

        with Memory() as m, server() as n:
            one, two = m.name + "-1", m.name + "-2"
            n.start(**zones(a=one, b=two))
            first = full(n, 50)
            # Two zones change names: each keeps its debts, and the counts stay with the name.
            assert n.reload(**zones(a=two, b=one)), n.log()
            equal((passed(n, 50, 1), stats(n)["a"]["passed"], stats(n)["b"]["passed"]), (0, 0, first))
            assert n.reload(**zones(a=one, b=two)), n.log()
            # A zone gets another name, and so no debts; its memory keeps its name.
            assert n.reload(**zones(c=one, b=two)), n.log()
            equal((passed(n, 50, 1), stats(n)["c"]["passed"]), (50, first + 50))
            equal([file.name.removeprefix(m.file.name) for file in m.all()], ["-1", "-1-counts", "-2", "-2-counts"])
    claims.claim("a_name_of_memory_goes_from_zone_to_zone", renamed)

    def seeded():
        with Memory() as m, server() as n:
            for file, text in ("one", SEED), ("two", SEED[::-1]):
                n.run.joinpath(file).write_text(text + "\n")
            n.start(**conf(more=f"table={m.name} seed={n.run}/one"))
            full(n, 50)
            assert n.reload(**conf(more=f"table={m.name} seed={n.run}/one")), n.log()
            equal((passed(n, 50, 1), n.log().count("it starts empty")), (0, 0))
            assert n.reload(**conf(more=f"table={m.name} seed={n.run}/two")), n.log()
            equal((passed(n, 50, 1), n.log().count('zone "a" has another seed: it starts empty')), (50, 1))
    claims.claim("a_table_with_another_seed_starts_empty", seeded)

    def large():
        room = shutil.disk_usage(SHM).total >> 20
        if not 0 < room < 1 << 20:
            raise Skip("/dev/shm has no bound")
        with Memory() as m, server() as n:
            good, said = n.test(**conf(more=f"table={m.name}", size=f"{room + 1}m"))
            assert not good and f"cannot have table={m.name}" in said and "28:" in said, said
            equal(m.all(), [])
    claims.claim("a_table_without_room_is_refused", large)

    def crashed():
        with Memory() as m, server() as n:
            n.start(**conf(more=f"table={m.name}"))
            equal(passed(n, 5, 3), 10)
            workers = n.children()
            n.started = False
            for pid in [n.pid(), *workers]:
                os.kill(pid, signal.SIGKILL)
            n.wait(lambda: not n.alive())
            assert m.live() >= 4, "nobody removed it"
            before = m.inode()
            n.start(**conf(more=f"table={m.name}"))
            assert m.inode() != before and m.live() == 0, "memory of before"
            equal(passed(n, 5, 3), 10)
    claims.claim("a_table_that_a_crash_has_left_is_replaced", crashed)

    def two():
        with Memory() as m, server() as n, server() as other:
            n.start(**conf(more=f"table={m.name}"))
            before = m.inode()
            other.write(**conf(more=f"table={m.name}"))
            done = other.command()
            said = done.stderr + (other.log() if (other.run / "error.log").exists() else "")
            assert done.returncode and "a process that runs has it; give another name" in said, said
            equal((m.inode(), len(m.all())), (before, 1))
            # A file that nobody has locked, such as that of a crash, is no hindrance.
            n.stop()
            m.file.write_bytes(b"left")
            other.start(**conf(more=f"table={m.name}"))
            equal(m.file.stat().st_size, 256 * 1024)
    claims.claim("a_second_nginx_with_the_name_of_a_table_is_refused", two)

    def upgraded():
        with Memory() as m, server() as n:
            n.start(**conf(more=f"table={m.name}"))
            equal(passed(n, 10, 3), 20)
            before = m.inode()
            old = upgrade(n)
            assert m.inode() != before, "the new one has no name"
            # It is given up: the old one goes on, and its next reload takes the name back.
            end(n, n.pid())
            equal(m.all(), [])
            n.wait(lambda: (n.run / "nginx.pid").exists())
            before = set(n.children())
            os.kill(old, signal.SIGHUP)
            n.wait(lambda: n.children() and not before & set(n.children()))
            assert m.live() >= 9, m.live()
            equal(passed(n, 10, 1), 0, "minted:")
            # It goes through: what the old one had does not take the name along.
            old = upgrade(n)
            before = m.inode()
            end(n, old)
            equal((m.inode(), len(m.all())), (before, 1))
            equal(passed(n, 10, 3), 20)
            # An nginx that was upgraded once takes no name of another one.
            with server() as other:
                other.start(**conf(more=f"table={m.name}-other"))
                equal(passed(other, 10, 3), 20)
                assert not n.reload(**conf(more=f"table={m.name}-other")), "it was taken"
                assert "a process that runs has it; give another name" in n.log(), n.log()
                equal([file.name for file in m.all()], [m.file.name, m.file.name + "-other"])
    claims.claim("an_upgrade_takes_the_name_of_a_table_and_gives_it_back", upgraded)

    def counted():
        def counts(which):
            # Two lines of a header, and then 16 words for each process.
            words = struct.unpack(f"={m.file.stat().st_size // 8}Q", m.file.read_bytes())[16:]
            return sum(words[0::16][which]), sum(words[3::16][which])

        old_half, new_half = slice(0, 128), slice(128, 256)
        with Memory() as m, server() as n, server() as other:
            more = f"counters={m.name}"
            n.start(**conf(more=more))
            equal(passed(n, 5, 3), 10)
            equal((counts(old_half), counts(new_half)), ((10, 5), (0, 0)))
            assert n.reload(**conf(more=more)), n.log()
            equal(passed(n, 2, 1), 0)
            equal((counts(old_half), counts(new_half)), ((10, 7), (0, 0)))
            # Workers of two binaries count at once, and none in the block of another.
            old = upgrade(n)
            for pid in n.children(old):
                os.kill(pid, signal.SIGSTOP)
            equal(passed(n, 5, 3), 10)
            equal((counts(old_half), counts(new_half)), ((10, 7), (10, 5)))
            for pid in n.children(old):
                os.kill(pid, signal.SIGCONT)
            end(n, old)
            # Another nginx has the half that is free now, and a third one has none.
            other.start(**conf(more=more))
            equal(passed(other, 3, 1), 3)
            equal((counts(old_half), counts(new_half)), ((13, 7), (10, 5)))
            with server() as third:
                third.start(**conf(more=more))
                said = third.log()
                assert "two other nginx have it" in said and "give another name" in said, said
                equal((passed(third, 4, 1), stats(third)["a"]["passed"]), (4, 4))
                equal((counts(old_half), counts(new_half)), ((13, 7), (10, 5)))
                # One ends: its half is that of the third one from the next reload on.
                other.stop()
                assert third.reload(**conf(more=more)), third.log()
                equal(passed(third, 2, 3), 2)
                equal((counts(old_half), counts(new_half)), ((15, 11), (10, 5)))
            # Without the name a reload starts from 0.
            m.file.unlink()
            assert n.reload(**conf(more=more)), n.log()
            equal(passed(n, 5, 1), 0)
            equal((counts(old_half), counts(new_half)), ((0, 5), (0, 0)))
    claims.claim("two_binaries_count_in_blocks_of_their_own", counted)
