-- Templates of subjects. Versions are counted on when a deleted one is published again.
CREATE TABLE templates (
  id uuid PRIMARY KEY,
  subject text NOT NULL,
  name text NOT NULL,
  version integer NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  deleted_at timestamptz,
  UNIQUE (subject, name)
);
CREATE INDEX templates_newest ON templates (subject, created_at DESC, id DESC) WHERE deleted_at IS NULL;
CREATE INDEX templates_deleted_at ON templates (deleted_at) WHERE deleted_at IS NOT NULL;

-- A version never changes.
CREATE TABLE template_versions (
  template_id uuid NOT NULL REFERENCES templates ON DELETE CASCADE,
  version integer NOT NULL,
  -- As its author wrote it, and as it is rendered. Not jsonb: that has no NUL.
  definition json NOT NULL,
  published json NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (template_id, version)
);
