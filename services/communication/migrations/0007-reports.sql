-- What providers reported, as it came, and each thing that it says (docs/decisions/0333).
CREATE TABLE notifications (
  id uuid PRIMARY KEY,
  provider text NOT NULL,
  -- Sealed.
  body bytea NOT NULL,
  received_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notifications_received_at ON notifications (received_at);

CREATE TABLE reports (
  id uuid PRIMARY KEY,
  notification_id uuid NOT NULL REFERENCES notifications ON DELETE CASCADE,
  provider text NOT NULL,
  -- The same when it is said again.
  event_key text NOT NULL,
  receipt text,
  reason text,
  -- Sealed: whom it is about.
  content bytea NOT NULL,
  -- Of the message, once it was found.
  message_id uuid,
  tries integer NOT NULL DEFAULT 0,
  -- Null: nothing is to be done.
  due_at timestamptz DEFAULT now(),
  received_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (provider, event_key)
);
CREATE INDEX reports_due_at ON reports (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX reports_notification ON reports (notification_id);
CREATE INDEX reports_message ON reports (message_id, received_at) WHERE message_id IS NOT NULL;
