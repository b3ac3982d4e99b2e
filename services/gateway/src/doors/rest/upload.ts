import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { AttemptError } from './upstream-failure.ts';

/**
 * The body of a request on its way to a service, which may want none of it, or only a part. What it
 * does not read is read here and dropped: the caller gets its answer only once it has been let
 * send, and its connection is good for the next request.
 */
export class Upload extends Readable {
  readonly #request: IncomingMessage;
  readonly #limitBytes: number;
  #received = 0;

  /**
   * @param limitBytes a longer body ends with BODY_TOO_LARGE; of the rest, as much again
   * is dropped.
   */
  constructor(request: IncomingMessage, limitBytes: number) {
    super();
    this.#request = request;
    this.#limitBytes = limitBytes;
    // It may break off while no attempt is under way; the next one gets the error.
    this.on('error', () => undefined);
    // Nothing is read before a service can receive it.
    request.pause();
    request.on('data', this.#receive);
    request.once('end', () => this.push(null));
    request.once('error', this.#breakOff);
    request.once('close', this.#breakOff);
  }

  /** Bytes that the service has read. */
  get sentBytes(): number {
    return this.#received - this.readableLength;
  }

  /** Whether nothing can go on before the caller sends more. */
  get waitsForCaller(): boolean {
    return !this.#request.complete && this.#request.readableLength === 0 && this.readableLength === 0;
  }

  override _read(): void {
    this.#request.resume();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#request.resume();
    done(error);
  }

  readonly #receive = (chunk: Buffer): void => {
    this.#received += chunk.length;
    if (this.destroyed) {
      if (this.#received > 2 * this.#limitBytes) this.#request.destroy();
    } else if (this.#received > this.#limitBytes) {
      this.destroy(new AttemptError('BODY_TOO_LARGE', 'caller', 'The body has too many bytes'));
    } else if (!this.push(chunk)) {
      this.#request.pause();
    }
  };

  readonly #breakOff = (): void => {
    if (!this.#request.complete)
      this.destroy(new AttemptError('UPSTREAM_UNREACHABLE', 'caller', 'the caller broke its body off'));
  };
}
