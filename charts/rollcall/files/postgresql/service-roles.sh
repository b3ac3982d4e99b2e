# Runs beside PostgreSQL at each of its starts: makes the role and the schemas of each service that has a password here.
set -eu

tries=0
# By TCP: while it sets itself up it listens on a socket only.
until pg_isready --quiet --host=127.0.0.1 --username=rollcall --dbname=rollcall; do
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || { echo 'PostgreSQL accepts no connections' >&2; exit 1; }
  sleep 0.5
done

for file in /etc/rollcall/passwords/*; do
  [ -e "$file" ] || continue
  # The password comes by a file: arguments can be read by everybody on the node.
  psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --set=service="${file##*/}" --set=file="$file" \
    --username=rollcall --dbname=rollcall <<'SQL'
\set password `cat :'file'`
SET rollcall.service TO :'service';
SET rollcall.password TO :'password';
\i /etc/rollcall/postgresql/service-role.sql
SQL
done
