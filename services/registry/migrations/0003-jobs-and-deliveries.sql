-- What a finished job tells beside the contract's history, for when its object is gone.
ALTER TABLE history
  ADD COLUMN job_id text,
  ADD COLUMN strategy text,
  ADD COLUMN reason text,
  ADD COLUMN message text,
  ADD COLUMN created_at timestamptz(3);

CREATE INDEX history_of_job ON history (job_name, finished_at DESC);

-- Signed calls with a timestamp, until that is too old: each may be made once.
CREATE TABLE webhook_calls (
  -- The webhook configuration whose secret proves the call.
  scope text NOT NULL,
  id text NOT NULL,
  -- Of what the call is to do.
  digest bytea NOT NULL,
  first_at timestamptz(3) NOT NULL,
  done boolean NOT NULL DEFAULT false,
  until timestamptz NOT NULL,
  PRIMARY KEY (scope, id)
);

CREATE INDEX webhook_calls_oldest ON webhook_calls (until);

-- Releases that a policy's autoDeploy made a job of: each artifact of a version at most once.
CREATE TABLE automatic_deployments (
  service_name text NOT NULL,
  version text NOT NULL,
  -- A hash of what it is.
  artifact text NOT NULL,
  requested_at timestamptz(3) NOT NULL,
  created boolean NOT NULL DEFAULT false,
  PRIMARY KEY (service_name, version, artifact)
);

-- Messages to channels, each until it is delivered or given up, and for some time after. Neither URLs nor secrets.
CREATE TABLE deliveries (
  id uuid PRIMARY KEY,
  service_name text NOT NULL,
  channel text NOT NULL,
  event text NOT NULL,
  payload json NOT NULL,
  state text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'delivered', 'dead')),
  attempts integer NOT NULL DEFAULT 0,
  last_attempt_at timestamptz(3),
  last_result text,
  -- What goes to the same host shares a lane; a hash.
  lane text NOT NULL,
  -- Of the queue's job that sends it; another one when it is replayed.
  queue_id uuid NOT NULL,
  created_at timestamptz(3) NOT NULL
);

CREATE INDEX deliveries_newest_first ON deliveries (created_at DESC, id);
CREATE INDEX deliveries_of_service ON deliveries (service_name, created_at DESC, id);
CREATE INDEX deliveries_pending ON deliveries (created_at) WHERE state = 'pending';

-- What channels were told of a job, kept as long as the history: its uid and the event make telling it twice harmless.
CREATE TABLE job_events (
  job_uid text NOT NULL,
  event text NOT NULL,
  told_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (job_uid, event)
);

-- Jobs that finished before there were events are no news.
INSERT INTO job_events (job_uid, event) SELECT job_uid, event FROM history, (VALUES ('started'), ('finished')) AS old (event);
