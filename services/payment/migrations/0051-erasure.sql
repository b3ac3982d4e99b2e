-- Of who was erased nothing personal is left: what was sealed is blank, and no index finds it (docs/decisions/0422).
ALTER TABLE customers ADD COLUMN erased_at timestamptz;
ALTER TABLE customers ALTER COLUMN email_index DROP NOT NULL;
ALTER TABLE payments ADD COLUMN erased_at timestamptz;
ALTER TABLE payments ALTER COLUMN email_index DROP NOT NULL;
CREATE INDEX payments_of_customer ON payments (customer_id) WHERE customer_id IS NOT NULL;

-- What it was about, since it was worked off: its bytes go with the payer.
ALTER TABLE notifications ADD COLUMN payment_id uuid;
CREATE INDEX notifications_of_payment ON notifications (payment_id) WHERE payment_id IS NOT NULL;
