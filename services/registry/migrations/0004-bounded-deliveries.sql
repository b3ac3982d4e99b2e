-- What is old enough to be forgotten, oldest first.
CREATE INDEX deliveries_settled ON deliveries (state, (coalesce(last_attempt_at, created_at))) WHERE state <> 'pending';

-- How many wait for a channel.
CREATE INDEX deliveries_waiting ON deliveries (service_name, channel) WHERE state = 'pending';
