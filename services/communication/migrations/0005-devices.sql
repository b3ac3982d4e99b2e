-- Devices that get push messages, and tokens of those that do no longer.
CREATE TABLE devices (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  -- HMAC of platform and token.
  token_index bytea NOT NULL,
  platform text NOT NULL,
  -- Token, user and app, sealed; null: it was never registered.
  details bytea,
  registered_at timestamptz NOT NULL DEFAULT now(),
  -- When its provider said that it is gone; null: it is there.
  gone_at timestamptz,
  UNIQUE (subject, token_index)
);
CREATE INDEX devices_gone_at ON devices (gone_at) WHERE gone_at IS NOT NULL;
