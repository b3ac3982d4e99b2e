-- Events that one webhook endpoint is sent as a test (platform/src/events/webhooks/deliveries.ts).
CREATE SEQUENCE test_event_positions;
