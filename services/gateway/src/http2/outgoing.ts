import type { Socket } from 'node:net';
import type { ClientStream } from './client-stream.ts';
import { FrameWriter } from './frame-writer.ts';
import { HpackEncoder } from './hpack/encoder.ts';
import { ConnectionError, errorCode, FRAME_BYTES, INITIAL_WINDOW_BYTES, WINDOW_BYTES_MAX } from './protocol.ts';

interface OutgoingDeps {
  readonly socket: Socket;
  /** A message and its answer are complete. */
  readonly onComplete: (stream: ClientStream) => void;
  /** Sends settings that change nothing, and tells when they are acknowledged. */
  readonly askServer: (onAnswer: () => void) => void;
}

/** Sent at once; more waits until it is taken. */
const FLUSHED_BYTES = 65_536;
/** A server that acknowledges no settings has had time to notice a reset. */
const LEAVING_MAX_MS = 1000;
const STREAM_ID_MAX = 2 ** 31 - 1;
const NOBODY: readonly ClientStream[] = [];

/** The streams of a connection, and what goes over it: once per turn of the event loop, as far as the server takes it. */
export class Outgoing {
  /** To be sent with the next flush. */
  readonly frames = new FrameWriter();
  readonly #deps: OutgoingDeps;
  readonly #encoder = new HpackEncoder();
  readonly #begun = new Map<number, ClientStream>();
  /** Those that the server does not take yet, in the order in which they came. */
  #waiting: ClientStream[] = [];
  /** Those that have something to send, and room for it as far as they know. */
  #line: ClientStream[] = [];
  #nextId = 1;
  #window = INITIAL_WINDOW_BYTES;
  #streamWindowBytes = INITIAL_WINDOW_BYTES;
  #maxStreams = Number.POSITIVE_INFINITY;
  /** Messages that were reset, and may count as open at the server for a moment yet. */
  #leaving = 0;
  #isAsking = false;
  #isFlushing = false;
  #isFull = false;
  #isStopped = false;

  constructor(deps: OutgoingDeps) {
    this.#deps = deps;
  }

  /** Whether the server has to read before more is sent. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** Whether there is a number left for another stream. */
  get hasIds(): boolean {
    return this.#nextId + 2 * this.#waiting.length <= STREAM_ID_MAX;
  }

  /** So many streams at once the server takes. */
  get maxStreams(): number {
    return this.#maxStreams;
  }

  set maxStreams(streams: number) {
    this.#maxStreams = streams;
    this.flushSoon();
  }

  /** Streams that the server knows of, and that are not over. */
  get begun(): ReadonlyMap<number, ClientStream> {
    return this.#begun;
  }

  /** @returns undefined where it is over. @throws ConnectionError where there never was one. */
  find(streamId: number): ClientStream | undefined {
    if (streamId === 0 || streamId % 2 === 0 || streamId >= this.#nextId) {
      throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'There is no such stream');
    }
    return this.#begun.get(streamId);
  }

  /** Sends the head of a stream, and what it says after that, once the server takes it. */
  begin(stream: ClientStream): void {
    this.#waiting.push(stream);
    this.flushSoon();
  }

  /** The stream is over. */
  remove(stream: ClientStream): void {
    this.#begun.delete(stream.id);
    this.flushSoon();
  }

  /** Ends a stream before that; nothing happens where it is over. */
  reset(stream: ClientStream, code: number): void {
    const place = stream.id === 0 ? this.#waiting.indexOf(stream) : -1;
    if (place >= 0) this.#waiting.splice(place, 1);
    if (this.#begun.get(stream.id) !== stream) return;
    this.frames.reset(stream.id, code);
    this.#leaving += 1;
    this.remove(stream);
  }

  /** Streams that were not begun, and will not be. */
  takeWaiting(): readonly ClientStream[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }

  /** Sends nothing more. @returns streams that were begun. */
  stop(): readonly ClientStream[] {
    this.#isStopped = true;
    const begun = [...this.#begun.values()];
    this.#begun.clear();
    this.#line = [];
    return begun;
  }

  /** @param bytes that the server keeps of fields. */
  setTableBytes(bytes: number): void {
    this.#encoder.resize(bytes);
  }

  /** @param bytes of each stream, also of those that are under way. @throws ConnectionError. */
  setStreamWindow(bytes: number): void {
    const more = bytes - this.#streamWindowBytes;
    if (more === 0) return;
    this.#streamWindowBytes = bytes;
    for (const stream of this.#begun.values()) {
      if (!this.widenStream(stream, more)) throw tooWide();
    }
  }

  /** @returns whether there can be so much room. */
  widenStream(stream: ClientStream, bytes: number): boolean {
    if (stream.sendWindow + bytes > WINDOW_BYTES_MAX) return false;
    stream.sendWindow += bytes;
    if (stream.hasToSend) this.sendSoon(stream);
    return true;
  }

  /** @throws ConnectionError. */
  widen(bytes: number): void {
    this.#window += bytes;
    if (this.#window > WINDOW_BYTES_MAX) throw tooWide();
    this.flushSoon();
  }

  /** A stream has something to send. */
  sendSoon(stream: ClientStream): void {
    if (stream.id === 0 || stream.isInLine) return;
    stream.isInLine = true;
    this.#line.push(stream);
    this.flushSoon();
  }

  flushSoon(): void {
    if (this.#isFlushing || this.#isFull || this.#isStopped) return;
    this.#isFlushing = true;
    // Once whatever came over all sockets has been looked at: a write to each other process costs more than a message does.
    setImmediate(flush, this);
  }

  /** To be told that the server has read what was sent. */
  drained(): void {
    this.#isFull = false;
    this.flush();
  }

  flush(): void {
    this.#isFlushing = false;
    while (!this.#isFull && !this.#isStopped) {
      this.#beginWaiting();
      const sent = this.#sendData();
      if (this.frames.bytes === 0) return;
      this.#isFull = !this.frames.flush(this.#deps.socket);
      for (const stream of sent) stream.tellDrained();
    }
  }

  #beginWaiting(): void {
    while (this.#waiting.length > 0 && this.#begun.size < this.#maxStreams && this.frames.bytes < FLUSHED_BYTES) {
      if (this.#begun.size + this.#leaving >= this.#maxStreams) return this.#askWhoLeft();
      const stream = this.#waiting.shift();
      if (stream === undefined) return;
      stream.id = this.#nextId;
      stream.sendWindow = this.#streamWindowBytes;
      this.#nextId += 2;
      this.#begun.set(stream.id, stream);
      this.frames.headers(stream.id, this.#encoder.encode(stream.fields));
      stream.fields = [];
      if (stream.hasToSend) this.sendSoon(stream);
    }
  }

  /**
   * A server may take a message that comes with the reset of another for one too many, and refuse it (Node's does). Once it has
   * acknowledged settings, it has dealt with what came before them.
   */
  #askWhoLeft(): void {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const leaving = this.#leaving;
    let isOver = false;
    const goOn = (): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(overdue);
      this.#isAsking = false;
      this.#leaving -= leaving;
      this.flushSoon();
    };
    const overdue = setTimeout(goOn, LEAVING_MAX_MS).unref();
    this.#deps.askServer(goOn);
  }

  /** One frame of each stream in its turn. @returns those that had one. */
  #sendData(): readonly ClientStream[] {
    if (this.#line.length === 0) return NOBODY;
    const sent: ClientStream[] = [];
    const left: ClientStream[] = [];
    // Those that have more to send stand in line again meanwhile.
    for (const stream of this.#line) {
      if (this.frames.bytes >= FLUSHED_BYTES || (stream.unsentBytes > 0 && this.#window <= 0)) {
        left.push(stream);
        continue;
      }
      stream.isInLine = false;
      if (this.#sendFrame(stream)) sent.push(stream);
    }
    this.#line = left;
    return sent;
  }

  /** @returns whether there was one to be sent. */
  #sendFrame(stream: ClientStream): boolean {
    if (!stream.hasToSend) return false;
    const room = Math.min(stream.sendWindow, this.#window, FRAME_BYTES);
    if (room <= 0 && stream.unsentBytes > 0) return false;
    const { data, isEnd } = stream.take(Math.max(0, room));
    stream.sendWindow -= data.length;
    this.#window -= data.length;
    this.frames.data(stream.id, data, isEnd);
    if (isEnd && stream.isAnswered) this.#deps.onComplete(stream);
    else if (stream.hasToSend) this.sendSoon(stream);
    return true;
  }
}

function flush(outgoing: Outgoing): void {
  outgoing.flush();
}

function tooWide(): ConnectionError {
  return new ConnectionError(errorCode.FLOW_CONTROL_ERROR, 'A window is too large');
}
