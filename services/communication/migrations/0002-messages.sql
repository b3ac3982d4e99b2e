-- Messages, and the calls of providers that were made for them (docs/decisions/0332).
-- BulkSMS knows a repetition by 31 bits.
CREATE SEQUENCE message_deduplication_ids AS integer MINVALUE 1 CYCLE;

CREATE TABLE messages (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  channel text NOT NULL,
  state text NOT NULL,
  category text NOT NULL,
  template text,
  template_version integer,
  locale text,
  tags text[] NOT NULL DEFAULT '{}',
  -- HMAC of the recipient, for searches.
  recipient bytea NOT NULL,
  -- Sealed: the recipient, metadata, and what routes it.
  envelope bytea NOT NULL,
  -- Sealed: what is sent; null once it was dropped.
  content bytea,
  deduplication_id integer NOT NULL DEFAULT nextval('message_deduplication_ids'),
  provider text,
  reason text,
  attempts integer NOT NULL DEFAULT 0,
  -- Providers that surely took nothing since the last pause.
  tried text[] NOT NULL DEFAULT '{}',
  pauses integer NOT NULL DEFAULT 0,
  repeats integer NOT NULL DEFAULT 0,
  send_at timestamptz,
  -- Null: nothing is to be done.
  due_at timestamptz,
  begun_at timestamptz,
  expires_at timestamptz NOT NULL,
  sent_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX messages_due_at ON messages (channel, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX messages_newest ON messages (subject, created_at DESC, id DESC);
CREATE INDEX messages_recipient ON messages (recipient, created_at DESC);
CREATE INDEX messages_tags ON messages USING gin (tags);
CREATE INDEX messages_created_at ON messages (created_at);
CREATE INDEX messages_content ON messages (created_at) WHERE content IS NOT NULL;

CREATE TABLE attempts (
  message_id uuid NOT NULL REFERENCES messages ON DELETE CASCADE,
  number integer NOT NULL,
  provider text NOT NULL,
  -- By which the provider's notifications name the message.
  provider_id text,
  state text NOT NULL,
  reason text,
  started_at timestamptz NOT NULL DEFAULT now(),
  ended_at timestamptz,
  PRIMARY KEY (message_id, number)
);
CREATE INDEX attempts_provider_id ON attempts (provider, provider_id) WHERE provider_id IS NOT NULL;
