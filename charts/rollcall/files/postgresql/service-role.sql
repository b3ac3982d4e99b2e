-- Makes the role of one service and its two schemas, `<service>` and `<service>_queue`, and gives it what is in them. The role may
-- connect to this database and touch nothing else. To be run as a superuser, again and again: what is there already stays, and an
-- object that another role has made (releases before 0.2 knew one role) gets its owner.
--
-- rollcall.service is the name of the service, rollcall.password the password of its role.
DO $roles$
DECLARE
  service text := current_setting('rollcall.service');
  owned_schema text;
  database text;
  statement text;
BEGIN
  IF service = current_user THEN
    RAISE EXCEPTION 'The service % cannot have the role of the administrator', service;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = service) THEN
    EXECUTE format('CREATE ROLE %I', service);
  END IF;
  EXECUTE format(
    'ALTER ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD %L',
    service, current_setting('rollcall.password'));

  -- By default everybody may connect to every database and make temporary tables there.
  FOR database IN SELECT datname FROM pg_database WHERE datallowconn LOOP
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', database);
  END LOOP;
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), service);
  REVOKE ALL ON SCHEMA public FROM PUBLIC;

  FOREACH owned_schema IN ARRAY ARRAY[service, service || '_queue'] LOOP
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %I', owned_schema);
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', owned_schema, service);
    FOR statement IN
      -- Indexes, and sequences of columns, go with their tables.
      SELECT format('ALTER TABLE %s OWNER TO %I', oid::regclass, service)
      FROM pg_class
      WHERE relnamespace = to_regnamespace(quote_ident(owned_schema)) AND relkind IN ('r', 'p', 'v', 'm', 'S')
        AND pg_get_userbyid(relowner) <> service
        AND NOT EXISTS (
          SELECT FROM pg_depend
          WHERE classid = 'pg_class'::regclass AND objid = pg_class.oid AND relkind = 'S' AND deptype IN ('a', 'i'))
      UNION ALL
      SELECT format('ALTER ROUTINE %s OWNER TO %I', oid::regprocedure, service)
      FROM pg_proc
      WHERE pronamespace = to_regnamespace(quote_ident(owned_schema)) AND pg_get_userbyid(proowner) <> service
      UNION ALL
      SELECT format('ALTER TYPE %s OWNER TO %I', oid::regtype, service)
      FROM pg_type
      WHERE typnamespace = to_regnamespace(quote_ident(owned_schema)) AND typtype IN ('d', 'e')
        AND pg_get_userbyid(typowner) <> service
    LOOP
      EXECUTE statement;
    END LOOP;
  END LOOP;
END
$roles$;
