import { Counter, type Registry } from 'prom-client';
import type { Clock } from '../../clock.ts';
import { createDueWork, type DueWork } from '../../postgres/due-work.ts';
import type { Logger } from '../../process/log.ts';
import { failureOf, type Post } from '../../webhooks/post.ts';
import { signStandard } from '../../webhooks/signatures.ts';
import { judge, type Posted, together } from './outcomes.ts';
import type { DueDelivery, DueEndpoint, RoundOutcome, WebhookQueue } from './webhooks.ts';

/** Endpoints that one replica sends to at a time. */
const ENDPOINTS = 50;
/** Posts to one endpoint at a time. */
const POSTS = 10;
/** Then others have their turn. With a last post of 10 s it is far from a minute, when the endpoint is free for others. */
const ROUND_MS = 10_000;

export interface WebhookSenderDeps {
  readonly queue: WebhookQueue;
  readonly post: Post;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/**
 * Sends what is due, endpoint by endpoint: each has its turn, and a slow one takes none but its own.
 * What was under way when a replica died is sent again, with the same `webhook-id`.
 */
export function createWebhookSender({ queue, post, clock, log, metrics }: WebhookSenderDeps): DueWork {
  const counter = new Counter({
    name: 'rollcall_webhook_attempts_total',
    help: 'Attempts of this replica to tell a webhook of a subject of an event.',
    labelNames: ['state'],
    registers: [metrics],
  });

  async function attempt(endpoint: DueEndpoint, delivery: DueDelivery): Promise<RoundOutcome> {
    const posted = await postTo(endpoint, delivery);
    const judgement = judge(posted, { attempts: delivery.attempts, now: clock.now(), random: Math.random });
    counter.inc({ state: judgement.delivery.state });
    await queue.settle(delivery, judgement.delivery);
    return judgement.round;
  }

  async function postTo(endpoint: DueEndpoint, { eventId: id, body }: DueDelivery): Promise<Posted> {
    const { url } = endpoint;
    const now = clock.now();
    const timestamp = String(Math.floor(now.getTime() / 1000));
    const signatures = secretsOf(endpoint, now).map((secret) => signStandard(secret, { id, timestamp, body }));
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.join(' '),
    };
    try {
      return await post({ url, headers, body });
    } catch (error) {
      return { failure: failureOf(error) };
    }
  }

  /** Goes on while all is well and there is more. */
  async function round(endpoint: DueEndpoint, signal: AbortSignal): Promise<void> {
    const untilMs = clock.monotonicMs() + ROUND_MS;
    const outcomes: RoundOutcome[] = [];
    let isWorthwhile = true;
    while (isWorthwhile && !signal.aborted && clock.monotonicMs() < untilMs) {
      const due = await queue.dueDeliveries(endpoint.id, POSTS);
      const made = await Promise.all(due.map((delivery) => attempt(endpoint, delivery)));
      outcomes.push(...made);
      isWorthwhile = due.length === POSTS && made.every(({ hasFailed }) => !hasFailed);
    }
    const disabledReason = await queue.endRound(endpoint.id, together(outcomes));
    if (disabledReason !== null) log.warn({ endpoint: endpoint.id, disabledReason }, 'webhook endpoint disabled');
    // There may be more.
    if (outcomes.length >= POSTS) sender.wake();
  }

  const sender = createDueWork({
    name: 'webhooks',
    take: (limit) => queue.takeEndpoints(limit),
    work: round,
    concurrency: ENDPOINTS,
    log,
  });
  return sender;
}

/** Pure. The newest first: receivers look for one that they know (Standard Webhooks, "Zero-downtime secret rotation"). */
function secretsOf({ secret, previous }: DueEndpoint, now: Date): readonly string[] {
  return previous === undefined || now >= new Date(previous.until) ? [secret] : [secret, previous.secret];
}
