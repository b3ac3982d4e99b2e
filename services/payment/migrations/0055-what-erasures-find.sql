-- An erasure finds by these what was answered. The table has what one day brings.
CREATE INDEX idempotency_keys_of_resource ON idempotency_keys (resource_id);
CREATE INDEX idempotency_keys_about ON idempotency_keys (about) WHERE about IS NOT NULL;

-- An older version ended them, and did not keep what they were about. This one leaves none.
CREATE INDEX notifications_about_nothing ON notifications (id)
  WHERE state = 'done' AND payment_id IS NULL AND sealed IS NOT NULL;
