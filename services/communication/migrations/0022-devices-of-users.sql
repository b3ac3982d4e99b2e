-- Devices in the order of lists, and those of one of a subject's users. `user_index` is the HMAC of the user.
ALTER TABLE devices ADD COLUMN created_at timestamptz NOT NULL DEFAULT now(), ADD COLUMN user_index bytea;
CREATE INDEX devices_newest ON devices (subject, created_at DESC, id DESC) WHERE gone_at IS NULL;
CREATE INDEX devices_of_user ON devices (subject, user_index, created_at DESC, id DESC) WHERE gone_at IS NULL;
