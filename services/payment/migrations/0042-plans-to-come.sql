-- A plan of another interval: it holds when what is billed is over (docs/decisions/0400).
ALTER TABLE subscriptions ADD COLUMN pending_plan_id uuid;
ALTER TABLE subscriptions ADD COLUMN pending_plan_version integer;
ALTER TABLE subscriptions ADD FOREIGN KEY (pending_plan_id, pending_plan_version)
  REFERENCES plan_versions (plan_id, version);
ALTER TABLE subscriptions ADD CHECK ((pending_plan_id IS NULL) = (pending_plan_version IS NULL));
