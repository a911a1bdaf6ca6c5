#!/bin/bash -eu
# The fuzz targets for ClusterFuzzLite, each with its seeds. By hand, on stable Rust:
#
#     SRC=$(dirname "$PWD") OUT=/tmp/out SANITIZER=none CARGO_TARGET_DIR=target .clusterfuzzlite/build.sh
#
# The hunts are left out: they crash by design, on the first scenario that breaks a planted fault.
sanitizer=${SANITIZER:-address}
# Without a sanitizer, comparisons are not traced either: that needs a nightly compiler.
traced=
[ "$sanitizer" != none ] || traced=--no-trace-compares
cargo fuzz build -s "$sanitizer" $traced

built=${CARGO_TARGET_DIR:-target}/$(rustc -vV | sed -n 's/^host: //p')/release
mkdir -p "$OUT"
for target in $(cargo fuzz list | grep -v '^hunt_'); do
    cp "$built/$target" "$OUT/"
    if [ -d "fuzz/corpus/$target" ]; then
        (cd "fuzz/corpus/$target" && zip -q -r - .) > "$OUT/${target}_seed_corpus.zip"
    fi
done
