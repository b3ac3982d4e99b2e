import { waitUntil } from '@rollcall/local/wait.ts';
import { createClient, forgedToken, hs256, tokenOf } from '../gateway/gateway.ts';
import type { Deployment } from '../support/deployment.ts';
import type { Supervised } from '../support/supervised.ts';

/** One time at which a replica was killed. Milliseconds by `performance.now()`. */
export interface Kill {
  readonly replica: number;
  /** When the signal was sent. */
  readonly fromMs: number;
  /** When the process was gone. */
  untilMs: number;
}

/** Kills a replica with SIGKILL. @param kills called before it is done. */
export async function killReplica(replicas: readonly Supervised[], replica: number, kills: Kill[]): Promise<Kill> {
  const kill: Kill = { replica, fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
  kills.push(kill);
  await at(replicas, replica).current.kill();
  kill.untilMs = performance.now();
  return kill;
}

/**
 * Waits until a replica has been started again and is ready.
 *
 * @param restarts how often it had been before.
 */
export async function untilBack(replica: Supervised, restarts: number): Promise<void> {
  const isReady = async () => {
    if (replica.restarts === restarts) return false;
    const answer = await fetch(`${replica.current.adminUrl}/readyz`).catch(() => undefined);
    return answer?.status === 200;
  };
  await waitUntil('a replica is ready again', isReady, { timeoutMs: 90_000 });
}

export function at(replicas: readonly Supervised[], index: number): Supervised {
  const replica = replicas[index];
  if (replica === undefined) throw new Error(`Replica ${index} has not been started`);
  return replica;
}

/** A question to a gateway with a token. */
interface Question {
  readonly path: string;
  readonly token: string;
}

export async function statusOf(gateway: Supervised, { path, token }: Question): Promise<number> {
  const answer = await fetch(`${gateway.current.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  return answer.status;
}

/** Waits until a replica answers so: it may not know a client yet. */
export function untilStatus(gateway: Supervised, question: Question, expected: number): Promise<void> {
  const hasAnswered = async () => (await statusOf(gateway, question)) === expected;
  return waitUntil(`a gateway answers with ${expected}`, hasAnswered, { timeoutMs: 20_000 });
}

/**
 * Tokens of which each would be admitted by a gateway that leaves out one of its checks; both
 * replicas refuse them by now.
 *
 * @param good whose they pretend to be.
 */
export async function badTokens(deployment: Deployment, { path, token: good }: Question): Promise<readonly string[]> {
  const { gateways } = deployment;
  const { current } = at(gateways, 0);
  const now = Math.floor(Date.now() / 1000);
  const answer = await fetch(`${current.url}/.well-known/jwks.json`);
  const [key] = ((await answer.json()) as { keys: { kid: string }[] }).keys;
  const revoked = await tokenOf(current, await createClient(deployment, { id: 'revoked' }));
  await deployment.kubectl(['delete', 'apiclient', 'revoked']);
  const [head = '', body = '', signature = ''] = good.split('.');
  const claimed: object = JSON.parse(Buffer.from(body, 'base64url').toString());
  const claims = { ...claimed, iat: now, exp: now + 3600 };
  const raised = { ...claimed, tier: 'premium', scope: 'admin' };
  const tampered = `${head}.${Buffer.from(JSON.stringify(raised)).toString('base64url')}.${signature}`;
  const tokens = [
    'garbage',
    forgedToken({ alg: 'none', typ: 'at+jwt' }, claims),
    forgedToken({ alg: 'HS256', typ: 'at+jwt', kid: key?.kid }, claims, hs256(JSON.stringify(key))),
    forgedToken({ alg: 'ES256', typ: 'at+jwt', kid: 'unknown' }, claims, () => signature),
    tampered,
    revoked,
  ];
  for (const gateway of gateways) {
    for (const token of tokens) await untilStatus(gateway, { path, token }, 401);
  }
  return tokens;
}
