import type { Answer } from './replica.ts';

const RETRY_MS = 3000;

/** What became of one simulated program. */
interface Member {
  readonly name: string;
  /** Undefined: it sends none, as clients do that know no instances. */
  readonly instanceId: string | undefined;
  /** That its registration was answered with. */
  serviceId: string;
  /** Whether it still sends heartbeats. */
  alive: boolean;
  /**
   * Heartbeats that were refused as unknown, though one was accepted no longer ago than
   * {@link FleetOptions.promisedMs}: it would have had to register again.
   */
  refusals: number;
  /** When the last one was sent that was accepted. */
  acceptedMs: number;
}

/**
 * Programs that register and then send heartbeats, trying again every 3 s when the registry fails.
 */
export interface Fleet extends AsyncDisposable {
  readonly members: readonly Member[];
}

export interface FleetOptions {
  readonly size: number;
  /** How many of them have one name: the first without an instance id, the others with one. */
  readonly perName: number;
  readonly prefix: string;
  /** Base URLs of the replicas; each try goes to the next. */
  readonly urls: readonly string[];
  /** Milliseconds between heartbeats, and that one is waited for. */
  readonly heartbeatMs: number;
  /**
   * Who sends one so often at least is never unknown, whatever is killed: the TTL less what a
   * replica may withhold from the store. Any time when absent.
   */
  readonly promisedMs?: number;
}

export async function startFleet({
  size,
  perName,
  prefix,
  urls,
  heartbeatMs,
  promisedMs = Infinity,
}: FleetOptions): Promise<Fleet> {
  const timers = new Set<NodeJS.Timeout>();
  let turn = 0;
  let stopped = false;

  async function post(path: string, body?: object): Promise<Pick<Answer, 'status' | 'body'>> {
    turn += 1;
    const url = `${urls[turn % urls.length]}/api/v1${path}`;
    const json =
      body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    return fetch(url, { method: 'POST', ...json, signal: AbortSignal.timeout(heartbeatMs) }).then(
      async (response) => ({ status: response.status, body: (await response.json()) as Answer['body'] }),
      () => ({ status: 0, body: undefined }),
    );
  }

  function later(member: Member, delayMs: number): void {
    const timer = setTimeout(() => {
      timers.delete(timer);
      if (!stopped && member.alive) void beat(member);
    }, delayMs);
    timers.add(timer);
  }

  async function beat(member: Member): Promise<void> {
    const sentMs = performance.now();
    const query = member.instanceId === undefined ? '' : `?instance_id=${member.instanceId}`;
    const { status } = await post(`/services/${member.name}/heartbeat${query}`);
    if (status === 200) member.acceptedMs = sentMs;
    if (status === 400 && performance.now() - member.acceptedMs <= promisedMs) member.refusals += 1;
    later(member, status === 200 ? heartbeatMs : RETRY_MS);
  }

  const members: Member[] = Array.from({ length: size }, (_, index) => ({
    name: `${prefix}-${Math.floor(index / perName)}`,
    instanceId: index % perName === 0 ? undefined : `i-${index % perName}`,
    serviceId: '',
    alive: true,
    refusals: 0,
    acceptedMs: performance.now(),
  }));
  const next = members.values();
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (const member of next) {
        member.acceptedMs = performance.now();
        const { name: service_name, instanceId: instance_id } = member;
        const request = { service_name, instance_id, service_url: 'http://127.0.0.1:9' };
        const { status, body } = await post('/services/register', request);
        if (status !== 200) throw new Error(`Registration of ${member.name} was answered with ${status}`);
        member.serviceId = String(body?.['service_id']);
        later(member, Math.random() * heartbeatMs);
      }
    }),
  );
  return {
    members,
    async [Symbol.asyncDispose]() {
      stopped = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
}
