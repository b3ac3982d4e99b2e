#!/bin/bash
# Starts PostgreSQL as its public image does, as far as the chart needs it: POSTGRES_USER, POSTGRES_PASSWORD and POSTGRES_DB, each also
# from the file that the variable of its name with _FILE names; PGDATA; as the user that the container has.
set -eu

[ "${1#-}" = "$1" ] || set -- postgres "$@"
[ "$1" = postgres ] || exec "$@"

for name in POSTGRES_USER POSTGRES_PASSWORD POSTGRES_DB; do
  file=${name}_FILE
  [ -z "${!file:-}" ] || declare "$name=$(<"${!file}")"
done
user=${POSTGRES_USER:-postgres}
database=${POSTGRES_DB:-$user}

mkdir -p "$PGDATA"
chmod 0700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  : "${POSTGRES_PASSWORD:?has to be given at the first start}"
  initdb --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") --locale=C.UTF-8
  printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  # On its socket alone: nobody finds it half made.
  pg_ctl --wait --options="-c listen_addresses=''" start
  if [ "$database" != postgres ]; then
    psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=name="$database" --username="$user" --dbname=postgres <<<'create database :"name";'
  fi
  pg_ctl --wait --mode=fast stop
fi
unset POSTGRES_PASSWORD
exec "$@"
