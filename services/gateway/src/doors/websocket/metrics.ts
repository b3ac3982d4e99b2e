import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Counted as it happens, which is far more often than it is read. */
export interface Stats {
  subscriptions: number;
  eventsSent: number;
  slowConsumers: number;
  /** A connection was ended here. */
  closed(code: number): void;
  /** An upgrade was refused. */
  refused(code: string): void;
  /** One was granted. */
  opened(): void;
  /** A connection is over, whoever ended it. */
  ended(afterMs: number): void;
}

/** From a client that fails at once to one that stays for a day. */
const DURATIONS_SECONDS = [1, 10, 60, 600, 3600, 21_600, 86_400];

/** @param connections how many are open now. */
export function createStats(metrics: Registry, connections: () => number): Stats {
  const registers = [metrics];
  const closed = new Counter({
    name: 'rollcall_gateway_websocket_closed_total',
    help: 'WebSocket connections that the gateway ended, by close code.',
    labelNames: ['code'],
    registers,
  });
  const refused = new Counter({
    name: 'rollcall_gateway_websocket_refused_total',
    help: 'WebSocket upgrades that were refused, by error code.',
    labelNames: ['code'],
    registers,
  });
  const opened = new Counter({
    name: 'rollcall_gateway_websocket_opened_total',
    help: 'WebSocket upgrades that were granted.',
    registers,
  });
  const durations = new Histogram({
    name: 'rollcall_gateway_websocket_duration_seconds',
    help: 'How long WebSocket connections lasted that are over.',
    buckets: DURATIONS_SECONDS,
    registers,
  });
  const stats: Stats = {
    subscriptions: 0,
    eventsSent: 0,
    slowConsumers: 0,
    closed: (code) => closed.inc({ code: String(code) }),
    refused: (code) => refused.inc({ code }),
    opened: () => opened.inc(),
    ended: (afterMs) => durations.observe(afterMs / 1000),
  };
  gauge(metrics, { name: 'connections', help: 'Open WebSocket connections.', read: connections });
  gauge(metrics, {
    name: 'subscriptions',
    help: 'Subscriptions of open WebSocket connections.',
    read: () => stats.subscriptions,
  });
  counter(metrics, {
    name: 'events_sent_total',
    help: 'Events handed to WebSocket connections.',
    read: () => stats.eventsSent,
  });
  counter(metrics, {
    name: 'slow_consumers_closed_total',
    help: 'WebSocket connections closed for not reading.',
    read: () => stats.slowConsumers,
  });
  return stats;
}

interface Observed {
  readonly name: string;
  readonly help: string;
  readonly read: () => number;
}

function gauge(metrics: Registry, { name, help, read }: Observed): Gauge {
  return new Gauge({
    name: `rollcall_gateway_websocket_${name}`,
    help,
    registers: [metrics],
    collect() {
      this.set(read());
    },
  });
}

function counter(metrics: Registry, { name, help, read }: Observed): Counter {
  return new Counter({
    name: `rollcall_gateway_websocket_${name}`,
    help,
    registers: [metrics],
    collect() {
      this.reset();
      this.inc(read());
    },
  });
}
