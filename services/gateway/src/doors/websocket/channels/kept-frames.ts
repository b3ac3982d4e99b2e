import { type EventParts, encodeEvent } from '../protocol.ts';
import type { Frame } from './channel-source.ts';

/**
 * An event in bytes of its own. Node cuts small buffers from blocks (`Buffer.poolSize`, 64 KiB),
 * and a block stays as long as any piece of it: with thousands of requests between two events, each
 * event that is kept would have one of its own.
 */
export function keptFrame(parts: EventParts): Frame {
  const bytes = encodeEvent(parts);
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** @returns the event in a channel by which an item is listed. */
type ListedFrames<Item> = (item: Item, channel: string) => Frame;

/**
 * Makes each once. An item that changes is another object, and its bytes are freed with it; so
 * lists share all that did not change between them, however many of them slow readers keep.
 */
export function listedFrames<Item extends object>(
  payloadOf: (change: { readonly type: 'added'; readonly item: Item }) => object,
): ListedFrames<Item> {
  const byItem = new WeakMap<Item, Map<string, Frame>>();
  return (item, channel) => {
    const frames = byItem.get(item) ?? new Map<string, Frame>();
    byItem.set(item, frames);
    const known = frames.get(channel);
    if (known !== undefined) return known;
    const frame = keptFrame({ channel, cursor: undefined, payload: payloadOf({ type: 'added', item }) });
    frames.set(channel, frame);
    return frame;
  };
}
