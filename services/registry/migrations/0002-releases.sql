-- What can be deployed or rolled back to: announced by a webhook, or delivered by a job.
CREATE TABLE releases (
  service_name text NOT NULL,
  version text NOT NULL,
  artifact_url text NOT NULL,
  artifact_type text NOT NULL CHECK (artifact_type IN ('image', 'binary')),
  checksum text,
  announced_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (service_name, version)
);

CREATE INDEX releases_newest_first ON releases (service_name, announced_at DESC);
