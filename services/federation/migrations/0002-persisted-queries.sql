-- Documents that clients sent once and then name by their hash (decision 0481).
CREATE TABLE persisted_queries (
  -- SHA-256 of the document.
  hash bytea PRIMARY KEY,
  document text NOT NULL,
  kept_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX persisted_queries_newest ON persisted_queries (kept_at DESC);
