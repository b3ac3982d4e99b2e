import { EventSourceParserStream } from 'eventsource-parser/stream';

export interface StreamEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: Record<string, unknown>;
}

/** An open stream of server-sent events. */
export interface EventStream extends AsyncDisposable {
  /**
   * The next event.
   *
   * @throws when none comes within the time (10 s by default) or the stream has ended.
   */
  next(timeoutMs?: number): Promise<StreamEvent>;
  /** Events up to and with the first of the type. @throws as {@link next}, for each of them. */
  until(type: string, timeoutMs?: number): Promise<StreamEvent[]>;
  /** Waits for the end, past all that is still on its way. @throws when neither an event nor the end comes in 10 s. */
  end(): Promise<void>;
}

const NEXT_TIMEOUT_MS = 10_000;

/**
 * @param token shown to a server that wants one.
 * @throws with the status and the answer where there is no stream.
 */
export async function openEventStream(url: string, lastEventId?: string, token?: string): Promise<EventStream> {
  const controller = new AbortController();
  const headers: Record<string, string> = { accept: 'text/event-stream' };
  if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
  if (lastEventId !== undefined) headers['last-event-id'] = lastEventId;
  const response = await fetch(url, { headers, signal: controller.signal });
  if (!response.ok) throw new Error(`The stream is answered with ${response.status}: ${await response.text()}`);
  if (response.body === null) throw new Error('The stream has no body');
  const events = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();

  async function read(timeoutMs = NEXT_TIMEOUT_MS) {
    const timer = setTimeout(() => controller.abort(new Error('No event in time')), timeoutMs);
    try {
      return await reader.read();
    } finally {
      clearTimeout(timer);
    }
  }

  async function next(timeoutMs?: number): Promise<StreamEvent> {
    const { done, value } = await read(timeoutMs);
    if (done) throw new Error('The stream has ended');
    return { id: value.id, type: value.event ?? 'message', data: JSON.parse(value.data) as Record<string, unknown> };
  }

  return {
    next,
    async until(type, timeoutMs) {
      const seen: StreamEvent[] = [];
      for (let event = await next(timeoutMs); ; event = await next(timeoutMs)) {
        seen.push(event);
        if (event.type === type) return seen;
      }
    },
    async end() {
      while (!(await read()).done);
    },
    async [Symbol.asyncDispose]() {
      // What has been sent and not read holds the pipe up: it has to be cancelled from its end.
      await reader.cancel();
      controller.abort();
    },
  };
}
