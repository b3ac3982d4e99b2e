import { isIPv6 } from 'node:net';
import type { HttpProbe } from '@rollcall/crds/types.gen.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { ask, type HttpAnswer } from '@rollcall/platform/outbound/exchange.ts';
import type { Dispatcher } from 'undici';
import type { Check, ProbeTarget } from './check.ts';

const LIMIT_BYTES = 64 * 1024;
const AT_ONCE = 8;

/**
 * Asks each pod by its own address, so that no Service and no route is in between; all have to
 * pass.
 */
export function createHttpProbe(dispatcher: Dispatcher): Check<HttpProbe> {
  async function probe(spec: HttpProbe, pod: ProbeTarget, signal: AbortSignal): Promise<string | undefined> {
    if (pod.ip === undefined) return 'it has no address';
    try {
      const answer = await ask(dispatcher, questionTo(spec, pod.ip), signal);
      return faultIn(answer, spec);
    } catch (error) {
      signal.throwIfAborted();
      return errorMessage(error);
    }
  }

  return async (spec, { pods }, signal) => {
    if (pods.length === 0) return { passed: false, message: 'no pod of the new version is ready to be asked' };
    const faults: string[] = [];
    const waiting = pods.values();
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, pods.length) }, async () => {
        for (const pod of waiting) {
          const fault = await probe(spec, pod, signal);
          if (fault !== undefined) faults.push(`pod ${pod.name}: ${fault}`);
        }
      }),
    );
    const [first] = faults;
    if (first === undefined) return { passed: true, message: `${countOf(pods.length)} answered as expected` };
    return { passed: false, message: faults.length === 1 ? first : `${first} (and ${faults.length - 1} more)` };
  };
}

function questionTo({ scheme, port, path, timeoutSeconds }: HttpProbe, ip: string) {
  const host = isIPv6(ip) ? `[${ip}]` : ip;
  return {
    method: 'GET',
    url: new URL(`${scheme.toLowerCase()}://${host}:${port}${path}`),
    timeoutMs: timeoutSeconds * 1000,
    limitBytes: LIMIT_BYTES,
  } as const;
}

function faultIn({ status, body, tookMs }: HttpAnswer, spec: HttpProbe): string | undefined {
  const { expectedStatuses, bodyContains, maxLatencyMilliseconds } = spec;
  const expected = expectedStatuses?.includes(status) ?? (status >= 200 && status < 400);
  if (!expected) return `it answered ${status}`;
  if (bodyContains !== undefined && !body.includes(bodyContains)) return 'its answer lacks the expected text';
  if (maxLatencyMilliseconds !== undefined && tookMs > maxLatencyMilliseconds) {
    return `it took ${Math.round(tookMs)} ms, more than ${maxLatencyMilliseconds} ms`;
  }
  return undefined;
}

function countOf(pods: number): string {
  return pods === 1 ? '1 pod' : `${pods} pods`;
}
