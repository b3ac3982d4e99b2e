-- Outcomes of calls with a key (platform/src/postgres/idempotency.ts).
CREATE TABLE idempotency_keys (
  subject text NOT NULL,
  operation text NOT NULL,
  key text NOT NULL,
  fingerprint bytea NOT NULL,
  resource_id uuid NOT NULL,
  claim uuid,
  claimed_until timestamptz NOT NULL,
  outcome bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (subject, operation, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
