import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import protobuf from 'protobufjs';
import { vi } from 'vitest';

/** Of opentelemetry-proto (`opentelemetry/proto/collector/trace/v1`), what the tests read. */
const PROTO = `
syntax = "proto3";
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { repeated Span spans = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5; uint32 kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9; Status status = 15;
}
message Status { string message = 2; uint32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
`;
const requestType = protobuf.parse(PROTO, { keepCase: true }).root.lookupType('ExportTraceServiceRequest');

type Value = string | number | boolean | undefined;

/** As it came over OTLP. */
export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: the first of its trace. */
  readonly parentId: string;
  readonly traceState: string;
  readonly name: string;
  readonly kind: 'server' | 'client' | 'other';
  readonly failed: boolean;
  readonly ms: number;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly resource: Readonly<Record<string, Value>>;
}

/** A collector of traces. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** Of exports, the newest last. */
  readonly requests: readonly { readonly path: string; readonly headers: IncomingHttpHeaders }[];
  /** What to do with exports from now on: accept them, refuse them with 500, or never answer. */
  mode: 'accept' | 'fail' | 'hang';
  /** Waits until spans of a trace satisfy. @returns all that came of it. */
  trace(traceId: string, isComplete: (spans: readonly ReceivedSpan[]) => boolean): Promise<readonly ReceivedSpan[]>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingHttpHeaders }[] = [];
  const server = createServer((request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers });
    // An exporter that has gone reports nothing.
    buffer(request)
      .then((body) => receive(body, response))
      .catch(() => response.destroy());
  });

  function receive(body: Buffer, response: ServerResponse): void {
    if (receiver.mode === 'hang') return;
    if (receiver.mode === 'accept') spans.push(...decode(body));
    response.writeHead(receiver.mode === 'accept' ? 200 : 500, { 'content-type': 'application/x-protobuf' });
    response.end();
  }

  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const receiver: OtlpReceiver = {
    url: `http://127.0.0.1:${port}`,
    spans,
    requests,
    mode: 'accept',
    trace: (traceId, isComplete) =>
      vi.waitFor(
        () => {
          const found = spans.filter((span) => span.traceId === traceId);
          if (!isComplete(found)) throw new Error(`Of ${traceId} came only ${JSON.stringify(found)}`);
          return found;
        },
        { timeout: 20_000, interval: 50 },
      ),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return receiver;
}

interface Pair {
  readonly key: string;
  readonly value: Readonly<Record<string, string | number | boolean>>;
}

interface WireSpan {
  readonly trace_id: string;
  readonly span_id: string;
  readonly parent_span_id: string;
  readonly trace_state: string;
  readonly name: string;
  readonly kind: number;
  readonly start_time_unix_nano: string;
  readonly end_time_unix_nano: string;
  readonly attributes: readonly Pair[];
  readonly status: { readonly code: number } | null;
}

interface WireRequest {
  readonly resource_spans: readonly {
    readonly resource: { readonly attributes: readonly Pair[] };
    readonly scope_spans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

const KINDS: ReadonlyMap<number, ReceivedSpan['kind']> = new Map([
  [2, 'server'],
  [3, 'client'],
]);
const STATUS_ERROR = 2;

function decode(body: Buffer): ReceivedSpan[] {
  const options = { bytes: String, longs: String, defaults: true, arrays: true };
  const request = requestType.toObject(requestType.decode(body), options) as WireRequest;
  return request.resource_spans.flatMap(({ resource, scope_spans }) =>
    scope_spans.flatMap((scope) => scope.spans.map((span) => readSpan(span, valuesOf(resource.attributes)))),
  );
}

function readSpan(span: WireSpan, resource: ReceivedSpan['resource']): ReceivedSpan {
  return {
    traceId: hex(span.trace_id),
    spanId: hex(span.span_id),
    parentId: hex(span.parent_span_id),
    traceState: span.trace_state,
    name: span.name,
    kind: KINDS.get(span.kind) ?? 'other',
    failed: span.status?.code === STATUS_ERROR,
    ms: Number(BigInt(span.end_time_unix_nano) - BigInt(span.start_time_unix_nano)) / 1e6,
    attributes: valuesOf(span.attributes),
    resource,
  };
}

function hex(base64: string): string {
  return Buffer.from(base64, 'base64').toString('hex');
}

function valuesOf(pairs: readonly Pair[]): Record<string, Value> {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [key, 'int_value' in value ? Number(value['int_value']) : Object.values(value)[0]]),
  );
}
