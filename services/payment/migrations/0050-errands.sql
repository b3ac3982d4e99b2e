-- What providers are asked to do while nobody waits for it. A row is gone when it is done.
CREATE TABLE errands (
  id uuid PRIMARY KEY,
  provider text NOT NULL,
  kind text NOT NULL CHECK (kind IN ('forget_method', 'close_checkout')),
  -- What the provider calls the method or the checkout.
  sealed bytea NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX errands_due ON errands (due_at);
