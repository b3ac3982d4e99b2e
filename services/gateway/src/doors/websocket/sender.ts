import type { Intake } from '@rollcall/platform/websocket/liveness.ts';
import type { WebSocket } from 'ws';
import type { Frame } from './channels/channel-source.ts';
import { createSendQueue } from './send-queue.ts';

/** What the socket holds at most before frames wait outside of it, where they are shared. */
const WINDOW_BYTES = 64 * 1024;

export interface SenderDeps {
  readonly socket: WebSocket;
  /** A consumer that lets more than this wait is too slow. */
  readonly limitBytes: number;
  /** It is. The sender has stopped. */
  readonly onTooSlow: () => void;
}

/** Sends frames in order, as fast as the peer reads them. */
export interface Sender {
  send(frame: Frame): void;
  /** As {@link SendQueue.keepBacklog}. */
  sendBacklog(frames: readonly Frame[]): () => void;
  /** Resolves once all is with the system, but for a little, or the sender has stopped. */
  ready(): Promise<void>;
  /** What the peer has read, and whether more waits for it. */
  intake(): Intake;
  /** Forgets what waits. Nothing that is given to it afterwards is sent. */
  stop(): void;
}

export function createSender({ socket, limitBytes, onTooSlow }: SenderDeps): Sender {
  const queue = createSendQueue({ windowBytes: WINDOW_BYTES, limitBytes });
  /** Frames that the system has accepted for the peer, which it does only as the peer reads. */
  let sentFrames = 0;
  let isStopped = false;
  let waiting: PromiseWithResolvers<void> | undefined;

  function transmit(frame: Frame): void {
    socket.send(frame, { binary: false }, onSent);
  }

  function onSent(error?: Error): void {
    if (error === undefined || error === null) sentFrames += 1;
    pump();
  }

  function pump(): void {
    if (isStopped || queue.isEmpty()) return;
    for (const frame of queue.next(socket.bufferedAmount)) transmit(frame);
    if (queue.isEmpty()) tellWaiting();
  }

  function tellWaiting(): void {
    waiting?.resolve();
    waiting = undefined;
  }

  function stop(): void {
    isStopped = true;
    queue.clear();
    tellWaiting();
  }

  return {
    send(frame) {
      if (isStopped) return;
      const verdict = queue.offer(frame, socket.bufferedAmount);
      if (verdict === 'send') transmit(frame);
      if (verdict !== 'overflow') return;
      stop();
      onTooSlow();
    },
    sendBacklog(frames) {
      if (isStopped) return () => undefined;
      const forget = queue.keepBacklog(frames);
      pump();
      return forget;
    },
    ready() {
      if (isStopped || queue.isEmpty()) return Promise.resolve();
      waiting ??= Promise.withResolvers();
      return waiting.promise;
    },
    intake: () => ({ sentFrames, isWaiting: !queue.isEmpty() || socket.bufferedAmount > 0 }),
    stop,
  };
}
