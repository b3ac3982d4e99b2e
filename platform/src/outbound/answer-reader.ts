import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';

/** What was read of an answer. */
interface ReadAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly bytes: Buffer;
  /** Whether there was more than the limit. */
  readonly cut: boolean;
}

/**
 * Reads the answer to a request that is dispatched with it. undici's own `request` makes a stream of
 * every body, which takes longer than all the rest of a small answer.
 */
export class AnswerReader implements Dispatcher.DispatchHandler {
  /** Rejects with what went wrong. */
  readonly answer: Promise<ReadAnswer>;
  readonly #limitBytes: number;
  readonly #settle: Omit<PromiseWithResolvers<ReadAnswer>, 'promise'>;
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #controller: Dispatcher.DispatchController | undefined;
  #reason: Error | undefined;

  /** @param limitBytes of the body: what comes after so many is not read. */
  constructor(limitBytes: number) {
    const { promise, ...settle } = Promise.withResolvers<ReadAnswer>();
    this.answer = promise;
    this.#settle = settle;
    this.#limitBytes = limitBytes;
  }

  /** Nobody waits for it any more. A request that was not sent is not, else its connection is closed. */
  abort(reason: Error): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
    this.#settle.reject(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#reason !== undefined) controller.abort(this.#reason);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Of several, only the last is the answer.
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#size += chunk.byteLength;
    if (this.#size <= this.#limitBytes) return;
    this.#end();
    controller.abort(new Error('The answer is too large'));
  }

  onResponseEnd(): void {
    this.#end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#settle.reject(error);
  }

  #end(): void {
    const [first] = this.#chunks;
    const all = first !== undefined && this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks);
    this.#settle.resolve({
      status: this.#status,
      headers: this.#headers,
      bytes: all.subarray(0, this.#limitBytes),
      cut: this.#size > this.#limitBytes,
    });
  }
}
