import { type Metadata, status } from '@grpc/grpc-js';
import { readTraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { Span, Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { REGISTRY } from './protocol.ts';

/** As much of a call of grpc-js as its span needs. */
interface TracedCall {
  readonly metadata: Metadata;
  /** Address and port. */
  getPeer(): string;
}

/**
 * Begins the span of a call, in the trace of the metadata.
 *
 * @param method of rollcall.registry.v1.Registry.
 */
export function startCallSpan(tracer: Tracer, method: string, call: TracedCall): Span {
  const given = readTraceContext(find(call.metadata, 'traceparent'), find(call.metadata, 'tracestate'));
  const name = `${REGISTRY}/${method}`;
  return tracer.startServer(name, given, {
    'rpc.system.name': 'grpc',
    'rpc.method': name,
    'client.address': call.getPeer().replace(/:\d+$/, ''),
    'user_agent.original': find(call.metadata, 'user-agent'),
  });
}

/** @param code CANCELLED: the caller gave it up. */
export function endCallSpan(span: Span, code: status): void {
  if (code === status.CANCELLED) span.set({ 'rollcall.abandoned': true });
  else span.set({ 'rpc.response.status_code': status[code] });
  // Of what calls end with here, the rest is for faults of their callers.
  if (code === status.INTERNAL || code === status.UNAVAILABLE) span.fail(status[code]);
  span.end();
}

/** The values of a name, as one; two of `traceparent` so are none that is valid. */
function find(metadata: Metadata, name: string): string | undefined {
  const values = metadata.get(name);
  return values.length === 0 ? undefined : values.join(',');
}
