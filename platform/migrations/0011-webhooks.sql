-- Where subjects are told of their events (platform/src/events/webhooks). `settings` has URL, secret and description,
-- sealed. Nobody sends before `busy_until`: a replica is at it, or the receiver asked for a pause.
CREATE TABLE webhook_endpoints (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  settings bytea NOT NULL,
  event_types text[] NOT NULL,
  disabled_reason text,
  failing_since timestamptz,
  busy_until timestamptz,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_endpoints_of_subject ON webhook_endpoints (subject, created_at, id);

-- One event to one endpoint; pending while `due_at` says when it is tried next.
CREATE TABLE webhook_deliveries (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  subject text NOT NULL,
  endpoint_id uuid NOT NULL REFERENCES webhook_endpoints ON DELETE CASCADE,
  event_id uuid NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  event_type text NOT NULL,
  state text NOT NULL DEFAULT 'pending',
  attempts integer NOT NULL DEFAULT 0,
  due_at timestamptz DEFAULT now(),
  last_attempt_at timestamptz,
  last_result text,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_of_subject ON webhook_deliveries (subject, created_at, id);
CREATE INDEX webhook_deliveries_of_event ON webhook_deliveries (event_id);
