"""Makes archives of images from layers, which are tars."""

import gzip
import hashlib
import io
import json
import tarfile

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar"


def digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tar(entries):
    """A tar of (name, what): bytes, None (a directory), "-> x" a symlink, "=> x" a hard link."""
    out = io.BytesIO()
    with tarfile.TarFile(fileobj=out, mode="w") as made:
        for name, what in entries:
            entry = tarfile.TarInfo(name)
            entry.mode = 0o755
            if what is None:
                entry.type = tarfile.DIRTYPE
            elif isinstance(what, bytes):
                entry.mode, entry.size = 0o644, len(what)
            else:
                entry.type = tarfile.SYMTYPE if what.startswith("->") else tarfile.LNKTYPE
                entry.linkname = what[3:]
            made.addfile(entry, io.BytesIO(what if isinstance(what, bytes) else b""))
    return out.getvalue()


def config(layers, **settings):
    """The configuration of an image of these layers."""
    return json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "2026-01-31T00:00:00Z",
            "config": settings,
            "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]},
        }
    ).encode()


def docker_save(*images):
    """The older format of `docker save`; each image is (names, layers, settings)."""
    files, manifest = {}, []
    for names, layers, settings in images:
        text = config(layers, **settings)
        where = digest(text)[7:] + ".json"
        files[where] = text
        paths = []
        for layer in layers:
            paths.append(f"{digest(layer)[7:]}/layer.tar")
            files[paths[-1]] = layer
        manifest.append({"Config": where, "RepoTags": list(names), "Layers": paths})
    files["manifest.json"] = json.dumps(manifest).encode()
    return tar(files.items())


def oci_files(name, layers, **settings):
    """An OCI layout: the bytes of each file."""
    text, files = config(layers, **settings), {}

    def add(kind, data, **more):
        files[f"blobs/sha256/{digest(data)[7:]}"] = data
        return {"mediaType": kind, "digest": digest(data), "size": len(data), **more}

    packed = [gzip.compress(layer, 1, mtime=0) for layer in layers]
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "config": add(OCI_CONFIG, text),
        "layers": [add(f"{OCI_LAYER}+gzip", blob) for blob in packed],
    }
    top = add(OCI_MANIFEST, json.dumps(manifest).encode())
    top["annotations"] = {"org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [top]}
    files["index.json"] = json.dumps(index).encode()
    files["oci-layout"] = b'{"imageLayoutVersion":"1.0.0"}'
    return files


def oci_tar(name, layers, **settings):
    return tar(oci_files(name, layers, **settings).items())


def oci_directory(top, name, layers, **settings):
    for path, data in oci_files(name, layers, **settings).items():
        (top / path).parent.mkdir(parents=True, exist_ok=True)
        (top / path).write_bytes(data)
    return top
