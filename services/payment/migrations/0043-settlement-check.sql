-- By these what is in the books of some days is compared with the provider's own list.
CREATE INDEX charges_booked_at ON charges (provider, created_at) WHERE is_booked;
CREATE INDEX refunds_succeeded_at ON refunds (updated_at) WHERE state = 'succeeded';
CREATE INDEX returns_booked_at ON returns (provider, created_at) WHERE is_booked;
