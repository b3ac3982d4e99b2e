-- What is known of each service with GraphQL, the graphs that were composed of them, and which is in force.

-- One row. Who changes subgraphs moves the revision on from the one that was read (decision 0465).
CREATE TABLE graph (
  is_only boolean PRIMARY KEY DEFAULT TRUE CHECK (is_only),
  revision bigint NOT NULL,
  -- The number of the generation in force; 0: there has been none.
  generation bigint NOT NULL
);
INSERT INTO graph (revision, generation) VALUES (0, 0);

CREATE TABLE subgraphs (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  service text NOT NULL UNIQUE,
  source text NOT NULL CHECK (source IN ('registered', 'introspected')),
  -- Where its GraphQL may be, and where it was found.
  candidates text[] NOT NULL,
  url text NOT NULL,
  -- As registered.
  version text,
  -- As last read; null: never.
  sdl text,
  -- What of it is in the graph; null: nothing.
  good_sdl text,
  -- Why `sdl` is not in the graph: [{code, message}].
  errors jsonb NOT NULL,
  -- Why it could not be read when it was last tried: {code, message}.
  failure jsonb,
  -- Since when it is no longer registered.
  gone_at timestamptz,
  -- Somebody removed it, and it is registered still.
  is_left_out boolean NOT NULL,
  updated_at timestamptz NOT NULL,
  due_at timestamptz
);
CREATE INDEX subgraphs_due ON subgraphs (due_at);

CREATE TABLE generations (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  number bigint NOT NULL UNIQUE,
  -- SDL; empty: no service is in the graph.
  supergraph text NOT NULL,
  hash text NOT NULL,
  -- The hash of the SDL of each service in it, by name.
  subgraphs jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX generations_newest ON generations (created_at DESC, id DESC);
