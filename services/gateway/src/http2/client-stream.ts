import { KeptData } from './kept-data.ts';
import { errorCode } from './protocol.ts';

/** How a stream came to its end. */
export interface StreamEnd {
  /** Both sides have ended it; one of them has reset it; its connection is gone. */
  readonly cause: 'complete' | 'reset' | 'lost';
  /** Of a reset (RFC 9113, section 7). */
  readonly code: number;
  /** Whether the server may have looked at it. Where not, it may be made again elsewhere (RFC 9113, section 8.7). */
  readonly mayBeTaken: boolean;
}

/** Told what comes over a stream, in this order. */
export interface StreamHandler {
  /** The head of the answer. @param fields names and values in turn. @param isEnd it is all of it: `onEnd` is not called. */
  onHead(fields: readonly string[], isEnd: boolean): void;
  /** Not while it is paused; within {@link ClientStream.resume}, too. @param chunk a part of a buffer that may be larger. */
  onData(chunk: Buffer): void;
  /** The answer is complete. @param trailers undefined: it has none. */
  onEnd(trailers: readonly string[] | undefined): void;
  /** What was written has gone out. */
  onDrain(): void;
  /** Nothing comes any more. It is called within the stream's own `reset` and `resume`, too. */
  onClosed(end: StreamEnd): void;
}

/** What a stream asks of its connection. */
export interface StreamOwner {
  /** There is something to send. */
  sendSoon(stream: ClientStream): void;
  /** So much of an answer was given to its handler. */
  consumed(stream: ClientStream, bytes: number): void;
  /** Tells the server, where it knows of the stream. */
  reset(stream: ClientStream, code: number): void;
}

/** Whoever has so much to send is asked to wait. */
const HIGH_WATER_BYTES = 16_384;

/** A message to a server, and the answer. Its connection alone uses what is marked so. */
export class ClientStream {
  /** For the connection. 0: its head is not sent yet. */
  id = 0;
  /** For the connection: how much may be sent. */
  sendWindow = 0;
  /** For the connection: how much came that the server was not yet given room for again... */
  usedWindow = 0;
  /** ...and how much of that was given to the handler. */
  consumedBytes = 0;
  /** For the connection: it has something to send and waits for its turn. */
  isInLine = false;
  /** For the connection: the head of the answer has come, and its end. */
  hasHead = false;
  isAnswered = false;
  /** For the connection: the end of the message is sent. */
  isSentInFull = false;
  /** For the connection: the head, until it is sent. */
  fields: readonly string[];
  readonly #owner: StreamOwner;
  #handler: StreamHandler;
  #unsent: Buffer[] = [];
  #unsentBytes = 0;
  #isEnded = false;
  #isAskedToWait = false;
  readonly #unread = new KeptData();
  #isPaused = false;
  /** Its handler has to be told of its end. */
  #isToEnd = false;
  #trailers: readonly string[] | undefined;
  /** Once it is known, though the answer may not be read in full. */
  #end: StreamEnd | undefined;
  #isOver = false;

  constructor(fields: readonly string[], owner: StreamOwner, handler: StreamHandler) {
    this.fields = fields;
    this.#owner = owner;
    this.#handler = handler;
  }

  /** What was written and has not gone out. */
  get unsentBytes(): number {
    return this.#unsentBytes;
  }

  /** What came and was not given to the handler. */
  get unreadBytes(): number {
    return this.#unread.length;
  }

  /** Whether whoever writes should wait for `onDrain`. */
  get needsDrain(): boolean {
    return this.#isAskedToWait;
  }

  /** Whether there is more to send: data, or the end. */
  get hasToSend(): boolean {
    return !this.#takesNothing && (this.#unsentBytes > 0 || (this.#isEnded && !this.isSentInFull));
  }

  /** @returns whether there is room for more; where not, `onDrain` is called once there is. */
  write(chunk: Buffer): boolean {
    if (this.#takesNothing || this.#isEnded || chunk.length === 0) return !this.#isAskedToWait;
    this.#unsent.push(chunk);
    this.#unsentBytes += chunk.length;
    this.#isAskedToWait ||= this.#unsentBytes >= HIGH_WATER_BYTES;
    this.#owner.sendSoon(this);
    return !this.#isAskedToWait;
  }

  /** Nothing more will be written. */
  end(): void {
    if (this.#takesNothing || this.#isEnded) return;
    this.#isEnded = true;
    this.#owner.sendSoon(this);
  }

  /** Ends it, whatever is under way. */
  reset(code: number): void {
    if (this.#isOver) return;
    this.#owner.reset(this, code);
    this.#close({ cause: 'reset', code, mayBeTaken: this.id !== 0 });
  }

  /** Gives no more data to the handler; what comes is kept, as much as its window has room for. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && !this.#isOver) {
      const chunk = this.#unread.shift();
      if (chunk === undefined) return this.#tellEnd();
      this.#give(chunk);
    }
  }

  /** For the connection. @returns so much of what is to be sent, at most; and whether it is the end of it. */
  take(mostBytes: number): { readonly data: Buffer; readonly isEnd: boolean } {
    const first = this.#unsent[0];
    let data: Buffer = NOTHING;
    if (first !== undefined && first.length > mostBytes) {
      data = first.subarray(0, mostBytes);
      this.#unsent[0] = first.subarray(mostBytes);
    } else if (first !== undefined) {
      data = first;
      this.#unsent.shift();
    }
    this.#unsentBytes -= data.length;
    const isEnd = this.#isEnded && this.#unsentBytes === 0;
    this.isSentInFull ||= isEnd;
    return { data, isEnd };
  }

  /** For the connection: what was to be sent may have gone out. */
  tellDrained(): void {
    if (!this.#isAskedToWait || this.#unsentBytes > 0 || this.#isOver) return;
    this.#isAskedToWait = false;
    this.#handler.onDrain();
  }

  /** For the connection. */
  receiveHead(fields: readonly string[], isEnd: boolean): void {
    this.hasHead = true;
    this.isAnswered = isEnd;
    this.#handler.onHead(fields, isEnd);
  }

  /** For the connection. */
  receiveData(chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#isPaused || this.#unread.length > 0) this.#unread.push(chunk);
    else this.#give(chunk);
  }

  /** For the connection: the answer is complete. */
  receiveEnd(trailers: readonly string[] | undefined): void {
    this.isAnswered = true;
    this.#trailers = trailers;
    this.#isToEnd = true;
    if (this.#unread.length === 0) this.#tellEnd();
  }

  /** For the connection: it is over. What came of a complete answer is given to the handler before that is told. */
  finish(end: StreamEnd): void {
    if (this.#takesNothing) return;
    if (!this.isAnswered) return this.#close(end);
    this.#end = { cause: 'complete', code: errorCode.NO_ERROR, mayBeTaken: true };
    this.#unsent = [];
    this.#unsentBytes = 0;
    // Whoever writes need not wait: it goes nowhere.
    this.tellDrained();
    if (this.#unread.length === 0) this.#tellEnd();
  }

  /** Whether nothing that is written goes anywhere any more. */
  get #takesNothing(): boolean {
    return this.#isOver || this.#end !== undefined;
  }

  #give(chunk: Buffer): void {
    this.#handler.onData(chunk);
    if (!this.#isOver) this.#owner.consumed(this, chunk.length);
  }

  #tellEnd(): void {
    if (this.#isOver) return;
    if (this.#isToEnd) {
      this.#isToEnd = false;
      this.#handler.onEnd(this.#trailers);
    }
    if (this.#end !== undefined) this.#close(this.#end);
  }

  #close(end: StreamEnd): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsent = [];
    this.#unsentBytes = 0;
    this.#unread.clear();
    const handler = this.#handler;
    // The connection holds its streams in a Map, and obsolete tables of that keep closed ones, as `LinkedList` says.
    this.#handler = NOBODY;
    this.fields = [];
    handler.onClosed(end);
  }
}

const NOBODY: StreamHandler = {
  onHead: () => undefined,
  onData: () => undefined,
  onEnd: () => undefined,
  onDrain: () => undefined,
  onClosed: () => undefined,
};

const NOTHING = Buffer.alloc(0);
