#!/bin/sh
# Writes what a release carries beside the binary: files.sh FOLDER
set -eu
out=$1
mkdir -p "$out/man" "$out/completions"
go build -o "$out/robots" ./cmd/robots
"$out/robots" man "$out/man"
for shell in bash zsh fish powershell; do
	"$out/robots" completion "$shell" >"$out/completions/robots.$shell"
done
"$out/robots" schema >"$out/robots.schema.json"
cp cmd/robots/internal/serve/openapi.json "$out/openapi.json"
rm "$out/robots"
