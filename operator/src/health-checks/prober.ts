import { isIP } from 'node:net';
import type { HealthCheckType } from '@rollcall/crds/types.gen.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { AddressRefusedError, type AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import { guardedResolve } from '@rollcall/platform/outbound/guarded-resolve.ts';
import { createLookups, isTemporary, resolveBySystem } from '@rollcall/platform/outbound/lookups.ts';
import { bareHost } from '@rollcall/platform/outbound/url-host.ts';
import { createGrpcProbe } from './grpc-probe.ts';
import { createHttpProbe } from './http-probe.ts';
import type { Outcome } from './next-state.ts';
import type { Probe, Prober, Target } from './probe.ts';
import { createTcpProbe } from './tcp-probe.ts';

const MESSAGE_MAX_LENGTH = 256;
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/**
 * @param mayConnect asked about the very address that is connected to.
 * @param resolve what asks for the addresses of a name; a test passes its own.
 */
export function createProber(mayConnect: AddressRule, resolve = resolveBySystem): Prober {
  const lookups = createLookups(guardedResolve(resolve, { mayConnect, except: new Set() }));
  const http = createHttpProbe(lookups);
  const probes: Readonly<Record<HealthCheckType, Probe>> = {
    http: http.probe,
    tcp: createTcpProbe(lookups),
    grpc: createGrpcProbe(lookups),
  };

  /** @returns whether there is an answer in time. @throws what is an answer, too: there is no address. */
  async function lookUp(hostname: string, signal: AbortSignal): Promise<boolean> {
    if (isIP(hostname) > 0) {
      if (mayConnect(hostname)) return true;
      throw new AddressRefusedError(hostname, [hostname]);
    }
    try {
      await Promise.race([lookups.resolve(hostname), aborted(signal)]);
      return true;
    } catch (error) {
      if (signal.aborted || isTemporary(error)) return false;
      throw error;
    }
  }

  async function ask({ url: registered, check }: Target, signal: AbortSignal): Promise<Outcome | undefined> {
    const url = new URL(registered);
    // A name server that is slow fails no service.
    if (!(await lookUp(bareHost(url.hostname), signal))) return undefined;
    return { passed: true, message: await probes[check.type](url, check, signal) };
  }

  return {
    async probe(target, signal) {
      const { timeoutSeconds } = target.check;
      const timeout = AbortSignal.timeout(timeoutSeconds * 1000);
      try {
        return await ask(target, AbortSignal.any([signal, timeout]));
      } catch (error) {
        signal.throwIfAborted();
        const message = timeout.aborted ? `no answer within ${timeoutSeconds} s` : errorMessage(error);
        return { passed: false, message: printable(message) };
      }
    },
    close: () => http.close(),
  };
}

/** What libraries report may have parts that the service sent. */
function printable(message: string): string {
  return message.replaceAll(UNPRINTABLE, ' ').slice(0, MESSAGE_MAX_LENGTH);
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return promise;
}
