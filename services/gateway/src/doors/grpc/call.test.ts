import { EventEmitter } from 'node:events';
import type { ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import { ClientStream, type StreamHandler } from '../../http2/client-stream.ts';
import type { Attempt } from './attempts.ts';
import { forwardCall } from './call.ts';
import { createCallMemory } from './call-memory.ts';

/** The caller's end of a call: of Node's streams what a call that is passed on needs of them. */
class Caller extends EventEmitter {
  isFull = false;
  headersSent = false;
  closed = false;
  #isPaused = false;
  readonly rstCode = 0;
  readonly destroyed = false;
  pause(): void {
    this.#isPaused = true;
  }
  resume(): void {
    this.#isPaused = false;
  }
  isPaused(): boolean {
    return this.#isPaused;
  }
  write(): boolean {
    return !this.isFull;
  }
  respond(): void {
    this.headersSent = true;
  }
  close(): void {
    this.closed = true;
  }
}

/** One that never sends anything. */
const CONNECTION = { sendSoon: () => undefined, consumed: () => undefined, reset: () => undefined };

function startCalls(heldCalls: number) {
  const memory = createCallMemory({ heldCalls, replayBytes: 1000 });
  return () => {
    const caller = new Caller();
    let backend: StreamHandler | undefined;
    const ends: unknown[] = [];
    const attempt: Partial<Attempt> = {
      isReady: () => true,
      begin(handler) {
        backend = handler;
        return new ClientStream([], CONNECTION, handler);
      },
      answered: () => undefined,
      abandon: () => undefined,
    };
    forwardCall({
      subject: 'alice',
      downstream: caller as unknown as ServerHttp2Stream,
      open: () => attempt as Attempt,
      addedHeaders: {},
      memory,
      onEnd: (status) => ends.push(status),
    });
    return {
      isOver: () => ends.length > 0,
      callerStopsReading() {
        backend?.onHead([':status', '200', 'content-type', 'application/grpc'], false);
        caller.isFull = true;
        backend?.onData(Buffer.from('a'));
      },
      backendStopsReading() {
        caller.emit('data', Buffer.alloc(16_384));
      },
    };
  };
}

test('of the calls that are held back the oldest is ended for a new one', () => {
  const newCall = startCalls(2);
  const calls = [newCall(), newCall(), newCall()];
  for (const call of calls) call.callerStopsReading();
  expect(calls.map(({ isOver }) => isOver())).toEqual([true, false, false]);
});

test('a call that is ended for itself, held back in both directions, keeps no place', () => {
  const newCall = startCalls(2);
  const both = [newCall(), newCall()];
  for (const call of both) call.callerStopsReading();
  for (const call of both) call.backendStopsReading();
  expect(both[0]?.isOver()).toBe(true);
  const later = Array.from({ length: 5 }, newCall);
  for (const call of later) call.callerStopsReading();
  expect(later.map(({ isOver }) => isOver())).toEqual([true, true, true, false, false]);
});
