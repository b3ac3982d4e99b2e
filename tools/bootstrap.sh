#!/bin/sh
# Installs the npm packages (among them the Node release everything runs on) when the lock file has changed since the
# last install. Every npm script that a newcomer runs first calls this, so that a fresh clone needs no other step.
# `npm install --no-save`, not `npm ci`: the latter refuses a lock file without entries for the optional packages of
# platforms whose registry did not offer them, and --no-save leaves the lock file as it is.
set -eu
cd "$(dirname "$0")/.."
stamp=node_modules/.installed-lock.json
cmp -s package-lock.json "$stamp" && exit 0
echo "Installing npm packages (first run, or package-lock.json changed) ..." >&2
npm install --no-save --no-fund --no-audit --loglevel=error >&2
cp package-lock.json "$stamp"
