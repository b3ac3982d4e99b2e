import type { WebSocket } from 'ws';

/** What waits to be read by all clients of this process. */
export interface AllWaiting {
  characters: number;
}

/** Who lets more wait has to read. */
const MUCH = 1024 * 1024;
/** Of one client, whether it reads or not. */
const MOST = 64 * 1024 * 1024;
/** Of all clients. Beyond it those for whom much waits are ended. */
const MOST_OF_ALL = 256 * 1024 * 1024;
/** Of an answer only the end shows that it was read, and large ones take long. */
const SLOW_MS = 20_000;

/** What is sent to one client, in characters of text. */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #all: AllWaiting;
  #waiting = 0;
  #sentFrames = 0;
  #readBefore = 0;
  #readAtMs: number;

  /** @param awakeMs see `createAwakeClock`. */
  constructor(socket: WebSocket, all: AllWaiting, awakeMs: number) {
    this.#socket = socket;
    this.#all = all;
    this.#readAtMs = awakeMs;
    socket.on('close', () => this.#take(this.#waiting));
  }

  /** How many messages the system has taken so far. */
  get sentFrames(): number {
    return this.#sentFrames;
  }

  /** Whether there is no room for more. What is sent then is sent all the same. */
  get isFull(): boolean {
    return this.#waiting > MUCH && (this.#waiting > MOST || this.#all.characters > MOST_OF_ALL);
  }

  send(text: string): void {
    this.#waiting += text.length;
    this.#all.characters += text.length;
    this.#socket.send(text, () => {
      this.#sentFrames += 1;
      this.#take(Math.min(text.length, this.#waiting));
    });
  }

  /** Whether much waits and nothing was read for a while. To be called often. */
  isStuck(awakeMs: number): boolean {
    const isReading = this.#waiting <= MUCH || this.#sentFrames > this.#readBefore;
    if (!isReading) return awakeMs - this.#readAtMs > SLOW_MS;
    this.#readBefore = this.#sentFrames;
    this.#readAtMs = awakeMs;
    return false;
  }

  /** Once the socket is closed nothing waits any more, whichever callbacks come. */
  #take(characters: number): void {
    this.#waiting -= characters;
    this.#all.characters -= characters;
  }
}
