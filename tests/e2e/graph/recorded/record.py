#!/usr/bin/env python3
"""Writes the output of `cargo metadata` for a package with these dependencies to NAME.json, reduced to crates that depend on CUDA
crates, and without paths of this machine.

    record.py candle-0.11 'candle-core = { version = "=0.11.1", features = ["cuda", "cudnn"] }'
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

TARGET = "x86_64-unknown-linux-gnu"
WANTED = {
    "cudarc", "cust_raw", "find_cuda_helper", "candle-kernels", "candle-flash-attn", "bindgen_cuda", "cudaforge",
    "cubecl-cuda", "torch-sys", "ort", "ort-sys", "nvml-wrapper", "cudnn-sys", "rcudnn-sys", "cublas-sys",
    "cuda-driver-sys", "cuda-runtime-sys",
}
KEPT = {
    "name", "version", "id", "source", "dependencies", "targets", "features", "manifest_path", "edition", "links",
}


def main() -> None:
    name, dependencies = sys.argv[1], "\n".join(sys.argv[2:])
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "src").mkdir()
        (root / "src/main.rs").write_text("fn main() {}\n")
        (root / "Cargo.toml").write_text(
            '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n[workspace]\n\n[dependencies]\n'
            + dependencies + "\n"
        )
        output = subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--filter-platform", TARGET],
            cwd=root, check=True, stdout=subprocess.PIPE, text=True,
        ).stdout
    metadata = json.loads(output)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    # The packages that depend on each package.
    dependents = {}
    for node in nodes.values():
        for dependency in node["deps"]:
            dependents.setdefault(dependency["pkg"], set()).add(node["id"])
    kept, open_ = set(), [one for one, package in names.items() if package in WANTED]
    while open_:
        one = open_.pop()
        if one not in kept:
            kept.add(one)
            open_.extend(dependents.get(one, ()))
    metadata["packages"] = [package for package in metadata["packages"] if package["id"] in kept]
    kept_names = {package["name"] for package in metadata["packages"]}
    for package in metadata["packages"]:
        for key in set(package) - KEPT:
            del package[key]
        package["dependencies"] = [one for one in package["dependencies"] if one["name"] in kept_names]
        kinds = {"lib", "rlib", "bin", "proc-macro", "cdylib"}
        package["targets"] = [one for one in package["targets"] if kinds & set(one["kind"])]
        place = "@ROOT@" if package["source"] is None else f"/registry/{package['name']}-{package['version']}"
        for target in package["targets"]:
            target["src_path"] = f"{place}/src/lib.rs"
        package["manifest_path"] = f"{place}/Cargo.toml"
    metadata["resolve"]["nodes"] = [node for node in metadata["resolve"]["nodes"] if node["id"] in kept]
    for node in metadata["resolve"]["nodes"]:
        node["deps"] = [one for one in node["deps"] if one["pkg"] in kept]
        node["dependencies"] = [one for one in node["dependencies"] if one in kept]
    metadata["target_directory"] = "@ROOT@/target"
    metadata["workspace_root"] = "@ROOT@"
    metadata.pop("build_directory", None)
    text = json.dumps(metadata, indent=1, sort_keys=True).replace(str(root), "@ROOT@")
    text = re.sub(r'registry\+https://[^#"]+', "registry+https://index.invalid", text)
    pathlib.Path(__file__).with_name(f"{name}.json").write_text(text + "\n")


main()
