import type { Http2Stream } from 'node:http2';

/** For the `error` of a stream whose `close` says all that matters; one function for all, since every call has two streams. */
export function ignoreError(): void {}

/**
 * To be called when a stream is closed: nobody listens to it any more. Node's session holds its streams in a Map, and obsolete tables
 * of that keep closed ones, as `LinkedList` says; what listened to them would be kept, too.
 */
export function release(stream: Http2Stream): void {
  // Node's own listener to this event would make the next line tell of each one that goes.
  stream.removeAllListeners('removeListener');
  stream.removeAllListeners();
  stream.on('error', ignoreError);
}
