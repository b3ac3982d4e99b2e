import type { ServerHttp2Stream } from 'node:http2';
import type { Forwarding } from './call.ts';
import type { CallSpan } from './call-span.ts';
import type { CallHead } from './headers.ts';

/**
 * A call from when it came until its stream is closed, and what is known of it, the more the
 * further it is.
 */
export interface KnownCall {
  readonly stream: ServerHttp2Stream;
  readonly head: CallHead;
  readonly span: CallSpan | undefined;
  readonly requestId: string;
  readonly beganAtMs: number;
  subject: string | undefined;
  /** The registration that it goes to; empty: none is found yet. */
  service: string;
  /** Goes with its answer, whatever that is: what the limit says, once it was asked. */
  limitHeaders: Readonly<Record<string, string>>;
  /** Gives back the place that it has among those of its caller. */
  leave: (() => void) | undefined;
  /** Its stream is closed. */
  isClosed: boolean;
  /** Once it goes on to a backend. */
  forwarded: { readonly token: string; readonly call: Forwarding } | undefined;
  /** How much of its answer its caller had read at the last sweep. */
  readBytes: number;
  /**
   * For how long its caller has read nothing of that. Counted in sweeps: while this process stands
   * still nobody is slow.
   */
  stuckMs: number;
}

const NONE = {};

export function knownCall(known: Pick<KnownCall, 'stream' | 'head' | 'span' | 'requestId' | 'beganAtMs'>): KnownCall {
  const { stream, head, span, requestId, beganAtMs } = known;
  return {
    stream,
    head,
    span,
    requestId,
    beganAtMs,
    subject: undefined,
    service: '',
    limitHeaders: NONE,
    leave: undefined,
    isClosed: false,
    forwarded: undefined,
    readBytes: 0,
    stuckMs: 0,
  };
}

/** What goes with an answer, or a refusal. */
export function answerHeaders({ limitHeaders, requestId }: KnownCall): Readonly<Record<string, string>> {
  return { ...limitHeaders, 'x-request-id': requestId };
}
