import type { Socket } from 'node:net';
import { ClientStream, type StreamEnd, type StreamHandler, type StreamOwner } from './client-stream.ts';
import { FieldsReader } from './fields-reader.ts';
import { type Frame, FrameReader, fieldsIn, withoutPadding } from './frame-reader.ts';
import { isTrailers, statusOf } from './message.ts';
import { Outgoing } from './outgoing.ts';
import { readSettings } from './peer-settings.ts';
import {
  ConnectionError,
  errorCode,
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

/** Answers that the server asks for and does not read are kept up to that. */
const OWED_ANSWERS_MAX = 1000;

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
  readonly #outgoing: Outgoing;
  readonly #pings: (() => void)[] = [];
  readonly #settings: (() => void)[] = [];
  #isReady = false;
  #isClosing = false;
  #isDestroyed = false;
  #owedAnswers = 0;
  #unacknowledgedBytes = 0;

  /** @param socket connected, or, over TLS, secured; the connection is its only user. */
  constructor(socket: Socket, options: ClientConnectionOptions, events: ClientConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#fields = new FieldsReader(options.maxHeaderBytes);
    this.#owner = {
      sendSoon: (stream) => this.#outgoing.sendSoon(stream),
      consumed: (stream, bytes) => this.#consumed(stream, bytes),
      reset: (stream, code) => this.#reset(stream, code),
    };
    this.#outgoing = new Outgoing({
      socket,
      onComplete: (stream) => this.#finish(stream, COMPLETE),
      askServer: (onAnswer) => this.sendSettings(onAnswer),
    });
    socket.setNoDelay(true);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('drain', () => {
      this.#owedAnswers = 0;
      this.#outgoing.drained();
    });
    socket.on('end', () => this.destroy());
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
    const { frames } = this.#outgoing;
    frames.preface();
    frames.settings([
      [setting.ENABLE_PUSH, 0],
      [setting.INITIAL_WINDOW_SIZE, options.windowBytes],
      [setting.MAX_HEADER_LIST_SIZE, options.maxHeaderBytes],
    ]);
    this.#settings.push(() => undefined);
    frames.windowUpdate(0, options.connectionWindowBytes - INITIAL_WINDOW_BYTES);
    this.#outgoing.flushSoon();
  }

  /** Whether it takes new messages. */
  get isOpen(): boolean {
    return !this.#isClosing && !this.#isDestroyed && this.#outgoing.hasIds;
  }

  get isDestroyed(): boolean {
    return this.#isDestroyed;
  }

  /** So many messages at once the server takes. */
  get maxStreams(): number {
    return this.#outgoing.maxStreams;
  }

  /**
   * Begins a message, where the connection is open.
   *
   * @param fields its head, names and values in turn, pseudo-headers first; each character is a byte.
   */
  begin(fields: readonly string[], handler: StreamHandler): ClientStream {
    if (!this.isOpen) throw new Error('The connection takes no new messages');
    const stream = new ClientStream(fields, this.#owner, handler);
    this.#outgoing.begin(stream);
    return stream;
  }

  /** @param onAnswer called when the server has answered. */
  ping(onAnswer: () => void): void {
    if (this.#isDestroyed) return;
    this.#pings.push(onAnswer);
    this.#outgoing.frames.ping(PING);
    this.#outgoing.flushSoon();
  }

  /** Sends settings that change nothing. @param onAnswer called when the server has acknowledged them. */
  sendSettings(onAnswer: () => void): void {
    if (this.#isDestroyed) return;
    this.#settings.push(onAnswer);
    this.#outgoing.frames.settings([]);
    this.#outgoing.flushSoon();
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
    this.#outgoing.frames.goaway(code);
    this.#outgoing.frames.flush(this.#socket);
    this.#socket.destroySoon();
    this.#over(error);
  }

  #over(error: Error | undefined): void {
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    const waiting = this.#outgoing.takeWaiting();
    const begun = this.#outgoing.stop();
    this.#events.onUnusable(error);
    for (const stream of begun) stream.finish({ cause: 'lost', code: errorCode.NO_ERROR, mayBeTaken: true });
    for (const stream of waiting) stream.finish({ cause: 'lost', code: errorCode.NO_ERROR, mayBeTaken: false });
  }

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
    const stream = this.#outgoing.find(frame.streamId);
    const data = withoutPadding(frame);
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
    this.#outgoing.frames.windowUpdate(0, this.#unacknowledgedBytes);
    this.#unacknowledgedBytes = 0;
    this.#outgoing.flushSoon();
  }

  #consumed(stream: ClientStream, bytes: number): void {
    stream.consumedBytes += bytes;
    if (stream.isAnswered || stream.consumedBytes < this.#options.windowBytes / 2) return;
    if (this.#outgoing.begun.get(stream.id) !== stream) return;
    this.#outgoing.frames.windowUpdate(stream.id, stream.consumedBytes);
    stream.usedWindow -= stream.consumedBytes;
    stream.consumedBytes = 0;
    this.#outgoing.flushSoon();
  }

  #takeFields(frame: Frame): void {
    const stream = this.#outgoing.find(frame.streamId);
    // Also those of a stream that is over: they change what is known of the fields to come.
    const block = this.#fields.take(frame, fieldsIn(frame));
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
    const stream = this.#outgoing.find(frame.streamId);
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
    let windowBytes: number | undefined;
    for (const [id, value] of readSettings(payload)) {
      if (id === setting.HEADER_TABLE_SIZE) this.#outgoing.setTableBytes(value);
      else if (id === setting.MAX_CONCURRENT_STREAMS) this.#outgoing.maxStreams = value;
      else if (id === setting.INITIAL_WINDOW_SIZE) windowBytes = value;
    }
    if (windowBytes !== undefined) this.#outgoing.setStreamWindow(windowBytes);
    this.#owe();
    this.#outgoing.frames.settingsAck();
    this.#outgoing.flushSoon();
    if (this.#isReady) return;
    this.#isReady = true;
    this.#events.onReady();
  }

  #takePing({ flags, streamId, payload }: Frame): void {
    if (streamId !== 0) throw notOfStream();
    if (payload.length !== PING.length) throw wrongSize();
    if ((flags & flag.ACK) !== 0) {
      this.#pings.shift()?.();
      return;
    }
    this.#owe();
    this.#outgoing.frames.pingAck(payload);
    this.#outgoing.flushSoon();
  }

  /** @throws ConnectionError where the server asks again and again, and reads no answer. */
  #owe(): void {
    if (!this.#outgoing.isFull) return;
    this.#owedAnswers += 1;
    if (this.#owedAnswers > OWED_ANSWERS_MAX) {
      throw new ConnectionError(errorCode.ENHANCE_YOUR_CALM, 'The server reads no answers');
    }
  }

  #takeGoaway({ streamId, payload }: Frame): void {
    if (streamId !== 0) throw notOfStream();
    if (payload.length < 8) throw wrongSize();
    const lastId = payload.readUInt32BE(0) & WINDOW_BYTES_MAX;
    this.#isClosing = true;
    this.#events.onUnusable();
    const waiting = this.#outgoing.takeWaiting();
    for (const [id, stream] of this.#outgoing.begun) if (id > lastId) this.#finish(stream, NOT_TAKEN);
    for (const stream of waiting) stream.finish(NOT_TAKEN);
    this.#closeWhenDone();
  }

  #takeWindowUpdate(frame: Frame): void {
    if (frame.payload.length !== 4) throw wrongSize();
    const bytes = frame.payload.readUInt32BE(0) & WINDOW_BYTES_MAX;
    if (frame.streamId === 0) {
      if (bytes === 0) throw new ConnectionError(errorCode.PROTOCOL_ERROR, 'A window is widened by nothing');
      return this.#outgoing.widen(bytes);
    }
    const stream = this.#outgoing.find(frame.streamId);
    if (stream === undefined) return;
    if (bytes === 0) this.#refuse(stream, errorCode.PROTOCOL_ERROR);
    else if (!this.#outgoing.widenStream(stream, bytes)) this.#refuse(stream, errorCode.FLOW_CONTROL_ERROR);
  }

  /** Ends a message for what the server has done. */
  #refuse(stream: ClientStream, code: number): void {
    this.#outgoing.reset(stream, code);
    this.#finish(stream, { cause: 'reset', code, mayBeTaken: true });
  }

  #reset(stream: ClientStream, code: number): void {
    this.#outgoing.reset(stream, code);
    // Its handler is told of its own end first.
    if (this.#isClosing) process.nextTick(() => this.#closeWhenDone());
  }

  #finish(stream: ClientStream, end: StreamEnd): void {
    this.#outgoing.remove(stream);
    stream.finish(end);
    this.#closeWhenDone();
  }

  /** After it was told to go. */
  #closeWhenDone(): void {
    if (this.#isClosing && this.#outgoing.begun.size === 0) this.close();
  }
}

const PING = Buffer.from('rollcall');
const COMPLETE: StreamEnd = { cause: 'complete', code: errorCode.NO_ERROR, mayBeTaken: true };
const NOT_TAKEN: StreamEnd = { cause: 'reset', code: errorCode.REFUSED_STREAM, mayBeTaken: false };

function wrongSize(): ConnectionError {
  return new ConnectionError(errorCode.FRAME_SIZE_ERROR, 'A frame is not as long as it must be');
}

function notOfStream(): ConnectionError {
  return new ConnectionError(errorCode.PROTOCOL_ERROR, 'A frame of the connection names a stream');
}
