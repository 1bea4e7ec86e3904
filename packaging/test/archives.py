"""Judges the archives of a release: archives.py SECONDS FOLDER CARGO_HOME FILE...

Whoever unpacks them gets files of owner 0 that everybody may read and only the owner may write, not newer than SECONDS
(the time of the commit). No file names FOLDER, in which the release was made, or CARGO_HOME.
"""
import calendar
import io
import subprocess
import sys
import tarfile
import zipfile


def in_tar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for one in archive:
            owners = one.uid, one.gid, one.uname or 'root', one.gname or 'root'
            mode = 0o644 if one.issym() else one.mode
            yield one.name, mode, owners, one.mtime, archive.extractfile(one).read() if one.isfile() else b''


def in_zip(path):
    with zipfile.ZipFile(path) as archive:
        for one in archive.infolist():
            yield one.filename, one.external_attr >> 16 & 0o7777, None, calendar.timegm(one.date_time), archive.read(one)


def entries(path):
    if path.endswith(('.zip', '.whl')):
        return in_zip(path)
    if path.endswith('.deb'):
        return in_tar(subprocess.run(('dpkg-deb', '--fsys-tarfile', path), check=True, stdout=subprocess.PIPE).stdout)
    with open(path, 'rb') as file:
        return in_tar(file.read())


def main():
    latest, foreign, wrong, count = int(sys.argv[1]), [one.encode() for one in sys.argv[2:4]], [], 0
    for path in sys.argv[4:]:
        if path.endswith(('SHA256SUMS', '.json')):
            continue
        for name, mode, owners, when, data in entries(path):
            count += 1
            # Those that write wheels let a group write RECORD.
            found = [f'mode {mode:o}'] if mode not in (0o644, 0o755) and not name.endswith('.dist-info/RECORD') else []
            found += [f'owners {owners}'] if owners not in (None, (0, 0, 'root', 'root')) else []
            found += [f'time {when}'] if when > latest else []
            found += ['a folder of its maker'] if any(one in data for one in foreign) else []
            found += ['a name that leaves its folder'] if name.startswith('/') or '..' in name.split('/') else []
            wrong += [f'{path.rsplit("/", 1)[1]}: {name}: {", ".join(found)}'] if found else []
    print(f'{count} files', *wrong, sep='\n')
    sys.exit(bool(wrong) or count < 1000)


main()
