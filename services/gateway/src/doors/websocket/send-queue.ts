import type { Frame } from './channels/channel-source.ts';

export interface SendQueueLimits {
  /**
   * What the socket holds at most, but for one frame: the rest waits here, shared with all who wait
   * for the same.
   */
  readonly windowBytes: number;
  /** A consumer for which more than this waits here is too slow. */
  readonly limitBytes: number;
}

/** Frames for one connection that its socket does not accept yet, in order. No I/O. */
export interface SendQueue {
  /**
   * @param bufferedBytes what the socket holds.
   * @returns `send`: at once; `wait`: it was kept; `overflow`: it was not, for too much waits.
   */
  offer(frame: Frame, bufferedBytes: number): 'send' | 'wait' | 'overflow';
  /**
   * Keeps frames that were there before the subscription. They do not count against the limit:
   * nobody is slow because there is much to send.
   *
   * @returns a function that forgets what of them still waits.
   */
  keepBacklog(frames: readonly Frame[]): () => void;
  /** Removes what may be sent now. */
  next(bufferedBytes: number): readonly Frame[];
  isEmpty(): boolean;
  clear(): void;
}

interface Entry {
  frames: readonly Frame[];
  next: number;
  /** Against the limit. */
  readonly counted: boolean;
}

export function createSendQueue({ windowBytes, limitBytes }: SendQueueLimits): SendQueue {
  let entries: Entry[] = [];
  let countedBytes = 0;

  return {
    offer(frame, bufferedBytes) {
      if (entries.length === 0 && bufferedBytes < windowBytes) return 'send';
      if (countedBytes + frame.length > limitBytes) return 'overflow';
      entries.push({ frames: [frame], next: 0, counted: true });
      countedBytes += frame.length;
      return 'wait';
    },
    keepBacklog(frames) {
      const entry: Entry = { frames, next: 0, counted: false };
      entries.push(entry);
      return () => {
        entry.frames = [];
      };
    },
    next(bufferedBytes) {
      const frames: Frame[] = [];
      let buffered = bufferedBytes;
      let done = 0;
      for (const entry of entries) {
        while (buffered < windowBytes) {
          const frame = entry.frames[entry.next];
          if (frame === undefined) break;
          entry.next += 1;
          frames.push(frame);
          buffered += frame.length;
          if (entry.counted) countedBytes -= frame.length;
        }
        if (entry.next < entry.frames.length) break;
        done += 1;
      }
      entries = entries.slice(done);
      return frames;
    },
    isEmpty: () => entries.length === 0,
    clear() {
      entries = [];
      countedBytes = 0;
    },
  };
}
