-- Operations that clients executed, for a check of what a change would break. Without literals: those may be of persons.

CREATE TABLE operations (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  -- SHA-256 of the document.
  hash text NOT NULL UNIQUE,
  -- Null: it has none.
  name text,
  document text NOT NULL,
  -- What of the schema it uses, such as `User.name`.
  coordinates text[] NOT NULL,
  -- What its clients call themselves; some of them, where they are many.
  clients text[] NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  last_used_at timestamptz NOT NULL
);
CREATE INDEX operations_newest ON operations (created_at DESC, id DESC);
CREATE INDEX operations_last_used ON operations (last_used_at);
CREATE INDEX operations_coordinates ON operations USING gin (coordinates);

CREATE TABLE operation_days (
  hash text NOT NULL REFERENCES operations (hash) ON DELETE CASCADE,
  day date NOT NULL,
  count bigint NOT NULL,
  PRIMARY KEY (hash, day)
);
