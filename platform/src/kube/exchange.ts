import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { errorMessage } from '../errors.ts';
import { KubeUnreachableError } from './errors.ts';

/** A whole answer. */
export interface Answer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface ExchangeOptions {
  /** From now to the last byte of the answer, the wait for a socket included. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Sends one request and reads the whole answer.
 *
 * A handler of its own, because undici's `request()` rejects an aborted request only once a socket
 * is free for it, its time limits begin only then, and its body stream is a third of the work of a
 * small answer.
 *
 * @throws KubeUnreachableError when there is no complete answer in time.
 */
export function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  { timeoutMs, signal }: ExchangeOptions,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const chunks: Buffer[] = [];
  let controller: Dispatcher.DispatchController | undefined;
  let head: Omit<Answer, 'text'> | undefined;
  let given: KubeUnreachableError | undefined;

  const timer = setTimeout(() => giveUp('no answer in time'), timeoutMs);
  const onAbort = () => giveUp('the request was aborted');
  signal?.addEventListener('abort', onAbort, { once: true });

  function end(): void {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }

  function fail(error: KubeUnreachableError): void {
    end();
    reject(error);
  }

  function giveUp(reason: string): void {
    given = unreachable(reason);
    fail(given);
    controller?.abort(given);
  }

  if (signal?.aborted === true) {
    giveUp('the request was aborted');
    return promise;
  }
  dispatcher.dispatch(request, {
    onRequestStart(started) {
      controller = started;
      if (given !== undefined) started.abort(given);
    },
    onResponseStart(_controller, statusCode, headers) {
      // Below 200 it is an announcement, not the answer.
      if (statusCode >= 200) head = { statusCode, headers };
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk);
    },
    onResponseEnd() {
      end();
      const [only] = chunks;
      const body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
      if (head !== undefined) resolve({ ...head, text: body.toString('utf8') });
    },
    onResponseError(_controller, error) {
      fail(unreachable(errorMessage(error), error));
    },
  });
  return promise;
}

export function unreachable(reason: string, cause?: unknown): KubeUnreachableError {
  return new KubeUnreachableError(
    `The API server could not be reached: ${reason}`,
    cause === undefined ? {} : { cause },
  );
}
