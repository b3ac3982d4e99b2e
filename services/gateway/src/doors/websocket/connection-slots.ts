import { GatewayError } from '../../errors.ts';
import type { WebSocketLimits } from './limits.ts';

/** How many connections there are, and may be. */
export interface ConnectionSlots {
  /** @throws GatewayError TOO_MANY_CONNECTIONS. */
  check(): void;
  /** @throws GatewayError RATE_LIMITED when the subject has as many as it may have. */
  checkFor(subject: string): void;
  /** Counts what is still being decided about, too. @returns a function that ends it. */
  reserve(): () => void;
  /** @returns a function that releases it. */
  acquire(subject: string): () => void;
  /** Open ones. */
  readonly size: number;
}

export function createConnectionSlots(
  limits: Pick<WebSocketLimits, 'connections' | 'connectionsPerSubject'>,
): ConnectionSlots {
  const perSubject = new Map<string, number>();
  let size = 0;
  let reserved = 0;

  return {
    check() {
      if (size + reserved < limits.connections) return;
      throw new GatewayError('TOO_MANY_CONNECTIONS');
    },
    checkFor(subject) {
      if ((perSubject.get(subject) ?? 0) < limits.connectionsPerSubject) return;
      const message = `The subject has ${limits.connectionsPerSubject} connections`;
      throw new GatewayError('RATE_LIMITED', { message, headers: { 'retry-after': '5' } });
    },
    reserve() {
      reserved += 1;
      return () => {
        reserved -= 1;
      };
    },
    acquire(subject) {
      size += 1;
      perSubject.set(subject, (perSubject.get(subject) ?? 0) + 1);
      return () => {
        size -= 1;
        const left = (perSubject.get(subject) ?? 0) - 1;
        if (left > 0) perSubject.set(subject, left);
        else perSubject.delete(subject);
      };
    },
    get size() {
      return size;
    },
  };
}
