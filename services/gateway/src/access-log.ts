import { HttpError } from '@rollcall/platform/http/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { mapError } from './errors.ts';

/**
 * A request, upgrade, call or the end of a WebSocket, and what became of it. Nothing of its query,
 * headers and body: they may hold what is no business of the log's.
 */
export interface AccessEntry {
  /** The caller's `x-request-id`, or the one that it was given. */
  readonly reqId: string;
  readonly trace_id?: string | undefined;
  /** Undefined: what came is no request. */
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  /** The registration that it went to. */
  readonly service?: string | undefined;
  /** Of the token; undefined: none that is valid was shown. */
  readonly subject?: string | undefined;
  /** Who asks for a token, by its own words. */
  readonly client?: string | undefined;
  /**
   * The status of the answer, or what there was in its place; of a WebSocket the code of its end.
   */
  readonly result: number | string;
  /** Of the error that the gateway itself answered. */
  readonly code?: string | undefined;
  /** From arrival to the end of the answer; of a WebSocket from its beginning to its end. */
  readonly ms: number;
  /** That were sent over a WebSocket. */
  readonly events?: number;
  readonly retries?: number;
  /** Why a service gave no answer. */
  readonly reason?: string;
}

/** Writes a line about each request that is no probe of health. */
export interface AccessLog {
  write(entry: AccessEntry): void;
  /** Of a service that is to blame for it. */
  warn(entry: AccessEntry): void;
}

export function createAccessLog(log: Logger): AccessLog {
  return {
    write: (entry) => log.info(entry, 'request'),
    warn: (entry) => log.warn(entry, 'request not answered by the service'),
  };
}

/** What an error is answered with over HTTP. */
export function refusalFields(error: unknown): Pick<AccessEntry, 'result' | 'code'> {
  const answer = error instanceof HttpError ? error : mapError(error);
  return { result: answer?.statusCode ?? 500, code: answer?.code ?? 'INTERNAL' };
}

/** To microseconds. */
export function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
