import { sleep } from '@rollcall/platform/retry.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RequestFaultRule } from './faults.ts';

const SLOW_MS = 1000;
/** Text where JSON is promised, as a proxy in front of a provider answers. */
const GARBAGE = '<html><body><h1>It works!</h1></body></html>';

/** What providers call an id of their own: FCM's is a `name`. */
const ID = /^(?:id|sid|name|apiMessageId|refundId|pf_payment_id)$/;

/** An answer that is about to be sent. */
export interface Answer {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** Of the body; a string or a Buffer, or nothing. */
  readonly payload: unknown;
  /** To be called where the answer will never end by itself. */
  readonly wasAnswered: () => void;
  readonly errorBody: (status: number) => unknown;
}

/** Answers as the fault says: the body to send instead, or one that never comes. */
export async function misbehave(fault: RequestFaultRule, answer: Answer): Promise<unknown> {
  const { request, reply, payload } = answer;
  switch (fault.kind) {
    case 'accept-and-hang':
      answer.wasAnswered();
      break;
    case 'status': {
      const { status = 503, retryAfter } = fault;
      if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
      reply.code(status).type('application/json').removeHeader('content-length');
      return JSON.stringify(answer.errorBody(status));
    }
    case 'garbage':
      reply.code(200).type('application/json').removeHeader('content-length');
      return GARBAGE;
    case 'broken-ids':
      if (!isJson(reply)) return payload;
      reply.removeHeader('content-length');
      return withBrokenIds(String(payload));
    case 'half-body':
      cutInTheMiddle(reply, payload);
      break;
    case 'reset':
      request.raw.socket.resetAndDestroy();
      break;
    case 'slow':
      await sleep(fault.delayMs ?? SLOW_MS);
      return payload;
  }
  return await never();
}

/** Each id of a JSON ends in half of an emoji and a NUL, as JSON writes them. */
function withBrokenIds(body: string): string {
  return JSON.stringify(JSON.parse(body), (name, value: unknown) =>
    typeof value === 'string' && ID.test(name) ? `${value}\ud83d\0` : value,
  );
}

function isJson(reply: FastifyReply): boolean {
  return String(reply.getHeader('content-type')).startsWith('application/json');
}

/** Announces the whole body, sends half of it, and closes the connection. */
function cutInTheMiddle(reply: FastifyReply, payload: unknown): void {
  const { raw, statusCode } = reply;
  const body = Buffer.isBuffer(payload) ? payload : Buffer.from(typeof payload === 'string' ? payload : '');
  const half = body.subarray(0, Math.floor(body.length / 2));
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) raw.setHeader(name, value);
  // Of an empty body at least one byte is missing too.
  raw.writeHead(statusCode, { 'content-length': Math.max(body.length, 1) });
  raw.flushHeaders();
  if (half.length === 0) raw.socket?.end();
  else raw.write(half, () => raw.socket?.end());
}

/** Fastify does nothing more with a request as long as a hook of it has not ended. */
export function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}
