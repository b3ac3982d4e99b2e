import { EventEmitter } from 'node:events';
import type { ClientHttp2Stream, ServerHttp2Stream } from 'node:http2';
import { expect, test } from 'vitest';
import type { Attempt } from './attempts.ts';
import { forwardCall } from './call.ts';
import { createCallMemory } from './call-memory.ts';

/** One end of a call: of Node's streams what a call that is passed on needs of them. */
class End extends EventEmitter {
  isFull = false;
  headersSent = false;
  closed = false;
  #isPaused = false;
  readonly rstCode = 0;
  readonly writableCorked = 1;
  readonly writableNeedDrain = false;
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

function startCalls(heldCalls: number) {
  const memory = createCallMemory({ heldCalls, replayBytes: 1000 });
  return () => {
    const [caller, backend] = [new End(), new End()];
    const ends: unknown[] = [];
    const attempt: Partial<Attempt> = {
      isReady: () => true,
      begin: () => backend as unknown as ClientHttp2Stream,
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
        backend.emit('response', {}, 0, [':status', '200', 'content-type', 'application/grpc']);
        caller.isFull = true;
        backend.emit('data', Buffer.from('a'));
      },
      backendStopsReading() {
        backend.isFull = true;
        caller.emit('data', Buffer.from('a'));
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
