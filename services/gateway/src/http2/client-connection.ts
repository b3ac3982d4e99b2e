import type { Socket } from 'node:net';
import { ClientStream, type StreamEnd, type StreamHandler, type StreamOwner } from './client-stream.ts';
import { FieldsReader } from './fields-reader.ts';
import { type Frame, FrameReader } from './frame-reader.ts';
import { FrameWriter } from './frame-writer.ts';
import { HpackEncoder } from './hpack/encoder.ts';
import { isTrailers, statusOf } from './message.ts';
import { readSettings } from './peer-settings.ts';
import {
  ConnectionError,
  errorCode,
  FRAME_BYTES,
  flag,
  frameType,
  INITIAL_WINDOW_BYTES,
  setting,
  WINDOW_BYTES_MAX,
} from './protocol.ts';

export interface ClientConnectionOptions {
  /** Of an answer that may be on its way before somebody reads it. */
  readonly windowBytes: number;
  /** Of all answers together: they are let through whether somebody reads them or not, as long as their own windows have room. */
  readonly connectionWindowBytes: number;
  /** Of the fields of a head, or of trailers (RFC 9113, section 10.5.1). */
  readonly maxHeaderBytes: number;
}

export interface ClientConnectionEvents {
  /** The server has sent its settings: it takes messages. */
  readonly onReady: () => void;
  /** It takes no new messages any more. It may be called more than once. @param error undefined: there is none. */
  readonly onUnusable: (error?: Error) => void;
}

/** Sent at once; more waits until it is taken. */
const FLUSHED_BYTES = 65_536;
/** Answers that the server asks for and does not read are kept up to that. */
const OWED_ANSWERS_MAX = 1000;
/** A server that acknowledges no settings has had time to notice a reset. */
const LEAVING_MAX_MS = 1000;
const STREAM_ID_MAX = 2 ** 31 - 1;

/**
 * The client's side of an HTTP/2 connection (RFC 9113). Whatever the server does ends a message or the connection, and nothing else.
 *
 * What happens in one turn of the event loop is sent at its end, in one piece. Messages that the server does not take yet, for it takes
 * no more at once or reads nothing, wait in the order in which they were begun.
 */
export class ClientConnection {
  readonly #socket: Socket;
  readonly #options: ClientConnectionOptions;
  readonly #events: ClientConnectionEvents;
  readonly #owner: StreamOwner;
  readonly #frames = new FrameReader();
  readonly #fields: FieldsReader;
  readonly #encoder = new HpackEncoder();
  readonly #writer = new FrameWriter();
  readonly #streams = new Map<number, ClientStream>();
  #waiting: ClientStream[] = [];
  /** Those that have something to send, and room for it as far as they know. */
  #line: ClientStream[] = [];
  readonly #pings: (() => void)[] = [];
  readonly #settings: (() => void)[] = [];
  #nextId = 1;
  #goawayId = STREAM_ID_MAX;
  #isReady = false;
  #isClosing = false;
  #isDestroyed = false;
  #isFlushing = false;
  #isFull = false;
  #owedAnswers = 0;
  #sendWindow = INITIAL_WINDOW_BYTES;
  #peerWindowBytes = INITIAL_WINDOW_BYTES;
  #maxStreams = Number.POSITIVE_INFINITY;
  /** Messages that were given up, and may count as open at the server for a moment yet. */
  #leaving = 0;
  #isAskingWhoLeft = false;
  #unacknowledgedBytes = 0;

  /** @param socket connected, or, over TLS, secured; the connection is its only user. */
  constructor(socket: Socket, options: ClientConnectionOptions, events: ClientConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#fields = new FieldsReader(options.maxHeaderBytes);
    this.#owner = {
      sendSoon: (stream) => this.#sendSoon(stream),
      consumed: (stream, bytes) => this.#consumed(stream, bytes),
      reset: (stream, code) => this.#reset(stream, code),
    };
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('drain', () => {
      this.#isFull = false;
      this.#owedAnswers = 0;
      this.#flush();
    });
    socket.on('end', () => this.destroy());
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    this.#writer.preface();
    this.#writer.settings([
      [setting.ENABLE_PUSH, 0],
      [setting.INITIAL_WINDOW_SIZE, options.windowBytes],
      [setting.MAX_HEADER_LIST_SIZE, options.maxHeaderBytes],
    ]);
    this.#settings.push(() => undefined);
    this.#writer.windowUpdate(0, options.connectionWindowBytes - INITIAL_WINDOW_BYTES);
    this.#flushSoon();
  }

  /** Whether it takes new messages. */
  get isOpen(): boolean {
    const lastId = this.#nextId + 2 * this.#waiting.length;
    return !this.#isClosing && !this.#isDestroyed && lastId <= STREAM_ID_MAX;
  }

  get isDestroyed(): boolean {
    return this.#isDestroyed;
  }

  /** So many messages at once the server takes. */
  get maxStreams(): number {
    return this.#maxStreams;
  }

  /**
   * Begins a message, where the connection is open.
   *
   * @param fields its head, names and values in turn, pseudo-headers first; each character is a byte.
   */
  begin(fields: readonly string[], handler: StreamHandler): ClientStream {
    if (!this.isOpen) throw new Error('The connection takes no new messages');
    const stream = new ClientStream(fields, this.#owner, handler);
    this.#waiting.push(stream);
    this.#flushSoon();
    return stream;
  }

  /** @param onAnswer called when the server has answered. */
  ping(onAnswer: () => void): void {
    if (this.#isDestroyed) return;
    this.#pings.push(onAnswer);
    this.#writer.ping(PING);
    this.#flushSoon();
  }

  /** Sends settings that change nothing. @param onAnswer called when the server has acknowledged them. */
  sendSettings(onAnswer: () => void): void {
    if (this.#isDestroyed) return;
    this.#settings.push(onAnswer);
    this.#writer.settings([]);
    this.#flushSoon();
  }

  /** Says goodbye, and ends it; messages that are under way are lost. */
  close(): void {
    this.#end(errorCode.NO_ERROR);
  }

  /** Ends it at once. */
  destroy(error?: Error): void {
    if (!this.#socket.destroyed) this.#socket.destroy();
    this.#over(error);
  }

  #end(code: number, error?: Error): void {
    if (this.#isDestroyed) return;
    this.#writer.goaway(code);
    this.#writer.flush(this.#socket);
    this.#socket.destroySoon();
    this.#over(error);
  }

  #over(error: Error | undefined): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    const streams = [...this.#streams.values()];
    const waiting = this.#waiting;
    this.#streams.clear();
    this.#waiting = [];
    this.#line = [];
    this.#events.onUnusable(error);
    for (const stream of streams) stream.finish({ cause: 'lost', code: errorCode.NO_ERROR, mayBeTaken: true });
    for (const stream of waiting) stream.finish({ cause: 'lost', code: errorCode.NO_ERROR, mayBeTaken: false });
  }

  // ---- what comes

  #read(chunk: Buffer): void {
    if (this.#isDestroyed) return;
    try {
      this.#frames.read(chunk, (frame) => {
        this.#take(frame);
        return !this.#isDestroyed;
      });
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.#end(error.code, error);
    }
  }

  /** @throws ConnectionError. */
  #take(frame: Frame): void {
    const { type, flags, streamId } = frame;
    if (!this.#isReady && (type !== frameType.SETTINGS || (flags & flag.ACK) !== 0)) {
      throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'The server does not begin with its settings');
    }
    if (this.#fields.isWithinBlock && (type !== frameType.CONTINUATION || streamId !== this.#fields.streamId)) {
      throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'A block of fields is interrupted');
    }
    switch (type) {
      case frameType.DATA:
        return this.#takeData(frame);
      case frameType.HEADERS:
      case frameType.CONTINUATION:
        return this.#takeFields(frame);
      case frameType.RST_STREAM:
        return this.#takeReset(frame);
      case frameType.SETTINGS:
        return this.#takeSettings(frame);
      case frameType.PUSH_PROMISE:
        throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'The server pushes, though it may not');
      case frameType.PING:
        return this.#takePing(frame);
      case frameType.GOAWAY:
        return this.#takeGoaway(frame);
      case frameType.WINDOW_UPDATE:
        return this.#takeWindowUpdate(frame);
      default:
        // What is not known is to be ignored (RFC 9113, section 4.1); so is priority.
        return undefined;
    }
  }

  #takeData(frame: Frame): void {
    this.#receivedBytes(frame.payload.length);
    const stream = this.#streamOf(frame);
    const data = withoutPadding(frame, 0);
    if (stream === undefined) return;
    if (!stream.hasHead) return this.#refuse(stream, errorCode.PROTOCOL_ERROR);
    if (stream.isAnswered) return this.#refuse(stream, errorCode.STREAM_CLOSED);
    stream.usedWindow += frame.payload.length;
    if (stream.usedWindow > this.#options.windowBytes) return this.#refuse(stream, errorCode.FLOW_CONTROL_ERROR);
    const paddingBytes = frame.payload.length - data.length;
    if (paddingBytes > 0) this.#consumed(stream, paddingBytes);
    if (data.length > 0) stream.receiveData(data);
    if ((frame.flags & flag.END_STREAM) !== 0) this.#answered(stream, undefined);
  }

  /** Of the whole connection: room for as much is given again, whoever it was for. */
  #receivedBytes(bytes: number): void {
    const { connectionWindowBytes } = this.#options;
    this.#unacknowledgedBytes += bytes;
    if (this.#unacknowledgedBytes < connectionWindowBytes / 2) return;
    this.#writer.windowUpdate(0, this.#unacknowledgedBytes);
    this.#unacknowledgedBytes = 0;
    this.#flushSoon();
  }

  #consumed(stream: ClientStream, bytes: number): void {
    stream.consumedBytes += bytes;
    if (stream.isAnswered || stream.consumedBytes < this.#options.windowBytes / 2) return;
    if (this.#streams.get(stream.id) !== stream) return;
    this.#writer.windowUpdate(stream.id, stream.consumedBytes);
    stream.usedWindow -= stream.consumedBytes;
    stream.consumedBytes = 0;
    this.#flushSoon();
  }

  #takeFields(frame: Frame): void {
    const stream = this.#streamOf(frame);
    // Also those of a stream that is over: they change what is known of the fields to come.
    const block = this.#fields.take(
      frame,
      frame.type === frameType.HEADERS ? withoutPadding(frame, priorityBytes(frame)) : frame.payload,
    );
    if (block === undefined || stream === undefined) return;
    const { fields, fault, isEnd } = block;
    if (fault !== undefined || stream.isAnswered) {
      return this.#refuse(stream, fault === 'too large' ? errorCode.ENHANCE_YOUR_CALM : errorCode.PROTOCOL_ERROR);
    }
    if (stream.hasHead) {
      if (!isEnd || !isTrailers(fields)) return this.#refuse(stream, errorCode.PROTOCOL_ERROR);
      return this.#answered(stream, fields);
    }
    const status = statusOf(fields);
    if (status === undefined || (status < 200 && isEnd)) return this.#refuse(stream, errorCode.PROTOCOL_ERROR);
    // One of several, before the one that counts.
    if (status < 200) return;
    stream.receiveHead(fields, isEnd);
    if (isEnd && stream.isSentInFull) this.#finish(stream, COMPLETE);
  }

  #answered(stream: ClientStream, trailers: readonly string[] | undefined): void {
    stream.receiveEnd(trailers);
    if (stream.isSentInFull) this.#finish(stream, COMPLETE);
  }

  #takeReset(frame: Frame): void {
    if (frame.payload.length !== 4) throw wrongSize();
    const stream = this.#streamOf(frame);
    if (stream === undefined) return;
    const code = frame.payload.readUInt32BE(0);
    this.#finish(stream, { cause: 'reset', code, mayBeTaken: code !== errorCode.REFUSED_STREAM });
  }

  #takeSettings({ flags, streamId, payload }: Frame): void {
    if (streamId !== 0) throw notOfStream();
    if ((flags & flag.ACK) !== 0) {
      if (payload.length > 0) throw wrongSize();
      this.#settings.shift()?.();
      return;
    }
    let windowBytes = this.#peerWindowBytes;
    for (const [id, value] of readSettings(payload)) {
      if (id === setting.HEADER_TABLE_SIZE) this.#encoder.resize(value);
      else if (id === setting.MAX_CONCURRENT_STREAMS) this.#maxStreams = value;
      else if (id === setting.INITIAL_WINDOW_SIZE) windowBytes = value;
    }
    this.#setWindow(windowBytes);
    this.#owe();
    this.#writer.settingsAck();
    this.#flushSoon();
    if (this.#isReady) return;
    this.#isReady = true;
    this.#events.onReady();
  }

  #setWindow(bytes: number): void {
    const more = bytes - this.#peerWindowBytes;
    if (more === 0) return;
    this.#peerWindowBytes = bytes;
    for (const stream of this.#streams.values()) {
      if (stream.sendWindow + more > WINDOW_BYTES_MAX) {
        throw new ConnectionError(errorCode.FLOW_CONTROL_ERROR, 'A window is too large');
      }
      this.#widen(stream, more);
    }
  }

  #takePing({ flags, streamId, payload }: Frame): void {
    if (streamId !== 0) throw notOfStream();
    if (payload.length !== PING.length) throw wrongSize();
    if ((flags & flag.ACK) !== 0) {
      this.#pings.shift()?.();
      return;
    }
    this.#owe();
    this.#writer.pingAck(payload);
    this.#flushSoon();
  }

  /** @throws ConnectionError where the server asks again and again, and reads no answer. */
  #owe(): void {
    if (!this.#isFull) return;
    this.#owedAnswers += 1;
    if (this.#owedAnswers > OWED_ANSWERS_MAX) {
      throw new ConnectionError(errorCode.ENHANCE_YOUR_CALM, 'The server reads no answers');
    }
  }

  #takeGoaway({ streamId, payload }: Frame): void {
    if (streamId !== 0) throw notOfStream();
    if (payload.length < 8) throw wrongSize();
    this.#goawayId = Math.min(this.#goawayId, payload.readUInt32BE(0) & 0x7fffffff);
    this.#isClosing = true;
    this.#events.onUnusable();
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const [id, stream] of this.#streams) if (id > this.#goawayId) this.#finish(stream, NOT_TAKEN);
    for (const stream of waiting) stream.finish(NOT_TAKEN);
    this.#closeWhenDone();
  }

  #takeWindowUpdate(frame: Frame): void {
    if (frame.payload.length !== 4) throw wrongSize();
    const bytes = frame.payload.readUInt32BE(0) & WINDOW_BYTES_MAX;
    if (frame.streamId === 0) {
      this.#sendWindow += bytes;
      if (bytes === 0 || this.#sendWindow > WINDOW_BYTES_MAX) {
        throw new ConnectionError(
          bytes === 0 ? errorCode.PROTOCOL_ERROR : errorCode.FLOW_CONTROL_ERROR,
          'A window is wrong',
        );
      }
      this.#flushSoon();
      return;
    }
    const stream = this.#streamOf(frame);
    if (stream === undefined) return;
    if (bytes === 0) this.#refuse(stream, errorCode.PROTOCOL_ERROR);
    else if (stream.sendWindow + bytes > WINDOW_BYTES_MAX) this.#refuse(stream, errorCode.FLOW_CONTROL_ERROR);
    else this.#widen(stream, bytes);
  }

  /** @returns undefined where it is over. @throws ConnectionError where there never was one. */
  #streamOf({ streamId }: Frame): ClientStream | undefined {
    if (streamId === 0 || streamId % 2 === 0 || streamId >= this.#nextId) {
      throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'There is no such stream');
    }
    return this.#streams.get(streamId);
  }

  /** Ends a message for what the server has done. */
  #refuse(stream: ClientStream, code: number): void {
    this.#writer.reset(stream.id, code);
    this.#leaving += 1;
    this.#finish(stream, { cause: 'reset', code, mayBeTaken: true });
  }

  #reset(stream: ClientStream, code: number): void {
    if (stream.id === 0) {
      const place = this.#waiting.indexOf(stream);
      if (place >= 0) this.#waiting.splice(place, 1);
      return;
    }
    if (this.#streams.get(stream.id) !== stream) return;
    this.#writer.reset(stream.id, code);
    this.#leaving += 1;
    this.#streams.delete(stream.id);
    this.#flushSoon();
    // Its handler is told of its own end first.
    if (this.#isClosing) process.nextTick(() => this.#closeWhenDone());
  }

  #finish(stream: ClientStream, end: StreamEnd): void {
    this.#streams.delete(stream.id);
    this.#flushSoon();
    stream.finish(end);
    this.#closeWhenDone();
  }

  /** After it was told to go. */
  #closeWhenDone(): void {
    if (this.#isClosing && this.#streams.size === 0) this.close();
  }

  // ---- what goes

  #widen(stream: ClientStream, bytes: number): void {
    stream.sendWindow += bytes;
    if (stream.hasToSend) this.#sendSoon(stream);
  }

  #sendSoon(stream: ClientStream): void {
    if (stream.id === 0 || stream.isInLine) return;
    stream.isInLine = true;
    this.#line.push(stream);
    this.#flushSoon();
  }

  #flushSoon(): void {
    if (this.#isFlushing || this.#isFull || this.#isDestroyed) return;
    this.#isFlushing = true;
    // Once whatever came over all sockets has been looked at: a write to each other process costs more than a message does.
    setImmediate(flush, this);
  }

  /** For {@link flush}. */
  flush(): void {
    this.#isFlushing = false;
    this.#flush();
  }

  #flush(): void {
    while (!this.#isFull && !this.#isDestroyed) {
      this.#beginWaiting();
      const sent = this.#sendData();
      if (this.#writer.bytes === 0) return;
      this.#isFull = !this.#writer.flush(this.#socket);
      for (const stream of sent) stream.tellDrained();
    }
  }

  #beginWaiting(): void {
    while (this.#waiting.length > 0 && this.#streams.size < this.#maxStreams && this.#writer.bytes < FLUSHED_BYTES) {
      if (this.#streams.size + this.#leaving >= this.#maxStreams) return this.#askWhoLeft();
      const stream = this.#waiting.shift();
      if (stream === undefined) return;
      stream.id = this.#nextId;
      stream.sendWindow = this.#peerWindowBytes;
      this.#nextId += 2;
      this.#streams.set(stream.id, stream);
      this.#writer.headers(stream.id, this.#encoder.encode(stream.fields));
      stream.fields = [];
      if (stream.hasToSend) this.#sendSoon(stream);
    }
  }

  /**
   * A server may take a message that comes with the reset of another for one too many, and refuse it (Node's does). Once it has
   * acknowledged settings, it has dealt with what came before them.
   */
  #askWhoLeft(): void {
    if (this.#isAskingWhoLeft) return;
    this.#isAskingWhoLeft = true;
    const leaving = this.#leaving;
    const goOn = (): void => {
      clearTimeout(overdue);
      if (!this.#isAskingWhoLeft) return;
      this.#isAskingWhoLeft = false;
      this.#leaving -= leaving;
      this.#flushSoon();
    };
    const overdue = setTimeout(goOn, LEAVING_MAX_MS).unref();
    this.sendSettings(goOn);
  }

  /** One frame of each stream in its turn. @returns those that had one. */
  #sendData(): readonly ClientStream[] {
    if (this.#line.length === 0) return NOBODY;
    const sent: ClientStream[] = [];
    const left: ClientStream[] = [];
    // Those that have more to send stand in line again meanwhile.
    for (const stream of this.#line) {
      if (this.#writer.bytes >= FLUSHED_BYTES || (stream.unsentBytes > 0 && this.#sendWindow <= 0)) {
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
    const room = Math.min(stream.sendWindow, this.#sendWindow, FRAME_BYTES);
    if (room <= 0 && stream.unsentBytes > 0) return false;
    const { data, isEnd } = stream.take(Math.max(0, room));
    stream.sendWindow -= data.length;
    this.#sendWindow -= data.length;
    this.#writer.data(stream.id, data, isEnd);
    if (isEnd && stream.isAnswered) this.#finish(stream, COMPLETE);
    else if (stream.hasToSend) this.#sendSoon(stream);
    return true;
  }
}

const NOBODY: readonly ClientStream[] = [];
const PING = Buffer.from('rollcall');
const COMPLETE: StreamEnd = { cause: 'complete', code: errorCode.NO_ERROR, mayBeTaken: true };
const NOT_TAKEN: StreamEnd = { cause: 'reset', code: errorCode.REFUSED_STREAM, mayBeTaken: false };

function flush(connection: ClientConnection): void {
  connection.flush();
}

/** @param start of the payload, behind the length of the padding. */
function withoutPadding({ flags, payload }: Frame, start: number): Buffer {
  const isPadded = (flags & flag.PADDED) !== 0;
  const first = start + (isPadded ? 1 : 0);
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0);
  if (first > end) throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'The padding is longer than the frame');
  return first === 0 && end === payload.length ? payload : payload.subarray(first, end);
}

function priorityBytes({ flags }: Frame): number {
  return (flags & flag.PRIORITY) === 0 ? 0 : 5;
}

function wrongSize(): ConnectionError {
  return new ConnectionError(errorCode.FRAME_SIZE_ERROR, 'A frame is not as long as it must be');
}

function notOfStream(): ConnectionError {
  return new ConnectionError(errorCode.PROTOCOL_ERROR, 'A frame of the connection names a stream');
}
