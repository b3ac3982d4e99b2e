-- One row for each finished DeliveryJob; the job's uid makes recording it twice harmless.
CREATE TABLE history (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  job_uid text NOT NULL UNIQUE,
  job_name text NOT NULL,
  service_name text NOT NULL,
  operation text NOT NULL CHECK (operation IN ('Deploy', 'Rollback')),
  old_version text NOT NULL,
  new_version text NOT NULL,
  started_at timestamptz(3) NOT NULL,
  finished_at timestamptz(3) NOT NULL,
  duration_seconds double precision NOT NULL CHECK (duration_seconds >= 0),
  -- How the job itself ended.
  outcome text NOT NULL CHECK (outcome IN ('success', 'failed', 'rolled_back')),
  -- The rollback job that undid this update later.
  undone_by text,
  status text NOT NULL GENERATED ALWAYS AS (CASE WHEN undone_by IS NULL THEN outcome ELSE 'rolled_back' END) STORED,
  artifact_url text NOT NULL,
  artifact_type text NOT NULL,
  checksum text NOT NULL,
  artifact_path text NOT NULL DEFAULT '',
  backup_path text NOT NULL DEFAULT '',
  requested_by text NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX history_newest_first ON history (finished_at DESC, id DESC);
CREATE INDEX history_of_service ON history (service_name, finished_at DESC, id DESC);
CREATE INDEX history_of_version ON history (service_name, new_version, finished_at);
CREATE INDEX history_rollbacks ON history (service_name, old_version, finished_at)
  WHERE operation = 'Rollback' AND outcome = 'success';
