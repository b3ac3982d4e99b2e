-- Who gets no messages of a subject, and why: a row for each reason.
CREATE TABLE suppressions (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  channel text NOT NULL,
  -- HMAC of the address or number, and the address or number, sealed.
  recipient_index bytea NOT NULL,
  recipient bytea NOT NULL,
  reason text NOT NULL,
  scope text NOT NULL CHECK (scope IN ('all', 'marketing')),
  message_id uuid,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (subject, channel, recipient_index, reason)
);
CREATE INDEX suppressions_newest ON suppressions (subject, created_at DESC, id DESC);
