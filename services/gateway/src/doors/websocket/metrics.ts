import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** From a client that fails at once to one that stays for a day. */
const DURATIONS_SECONDS = [1, 10, 60, 600, 3600, 21_600, 86_400];

/** What is counted of connections. */
export type Stats = ReturnType<typeof createStats>;

/** @param connections how many are open now. */
export function createStats(metrics: Registry, connections: () => number) {
  const described = (name: string, help: string) => ({
    name: `rollcall_gateway_websocket_${name}`,
    help,
    registers: [metrics],
  });
  void new Gauge({
    ...described('connections', 'Open WebSocket connections.'),
    collect() {
      this.set(connections());
    },
  });
  return {
    subscriptions: new Gauge(described('subscriptions', 'Subscriptions of open WebSocket connections.')),
    eventsSent: new Counter(described('events_sent_total', 'Events handed to WebSocket connections.')),
    slowConsumers: new Counter(
      described('slow_consumers_closed_total', 'WebSocket connections closed for not reading.'),
    ),
    closed: new Counter({
      ...described('closed_total', 'WebSocket connections that the gateway ended, by close code.'),
      labelNames: ['code'],
    }),
    refused: new Counter({
      ...described('refused_total', 'WebSocket upgrades that were refused, by error code.'),
      labelNames: ['code'],
    }),
    opened: new Counter(described('opened_total', 'WebSocket upgrades that were granted.')),
    durations: new Histogram({
      ...described('duration_seconds', 'How long WebSocket connections lasted that are over.'),
      buckets: DURATIONS_SECONDS,
    }),
  };
}
