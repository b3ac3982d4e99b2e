-- Old ones are deleted. Their events do not come again.
DROP INDEX notifications_created_at;
CREATE INDEX notifications_done_at ON notifications (created_at) WHERE state = 'done';
