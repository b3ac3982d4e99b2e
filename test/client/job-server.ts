import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { JobRecord } from '@rollcall/client/job-types.ts';

/**
 * What the event stream of a job does instead of sending events. `silent`: is opened and says
 * nothing.
 */
type StreamFault = 'silent' | 'cut' | { readonly status: number; readonly body: unknown };

interface Call {
  /** Method and path below `/api/v1`, as sent. */
  readonly what: string;
  readonly body: string;
  readonly headers: IncomingMessage['headers'];
}

/**
 * A small registry that speaks the delivery part of the API, in memory, and loses connections when
 * made to: what the real one does not do on demand.
 */
export interface JobServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: Call[];
  /** Makes the job, or changes it, and sends it to whoever follows it. @returns what it now is. */
  put(jobId: string, changes?: Partial<JobRecord>): JobRecord;
  /** Forgets the job without a word. */
  forget(jobId: string): void;
  /** How event streams fail from now on; undefined: no longer. Open ones stay. */
  breakStreams(fault: StreamFault | undefined): void;
  /** How every call but event streams is answered from now on; undefined: as it should be. */
  breakCalls(fault: Exclude<StreamFault, 'silent'> | undefined): void;
  /** Cuts all connections on which events are reported, in the middle of a message. */
  cutStreams(): void;
  /** Ends all event streams, as a registry that shuts down does. */
  endStreams(): void;
  /** How many event streams are open. */
  streams(): number;
  /** The value of Last-Event-ID of each event stream that was asked for. */
  resumedFrom(): readonly (string | undefined)[];
  callsOf(what: string): Call[];
}

const finished = new Set(['Succeeded', 'RolledBack', 'Failed']);

export function jobRecord(jobId: string, changes: Partial<JobRecord> = {}): JobRecord {
  return {
    job_id: jobId,
    service_name: 'shop',
    operation: 'deploy',
    version: '1.4.0',
    old_version: null,
    strategy: null,
    phase: 'Pending',
    stage: null,
    step: null,
    weight: null,
    actual_weight: null,
    reason: null,
    message: 'waits for its turn',
    artifact: { url: 'registry.example/shop:1.4.0', type: 'image', checksum: null },
    requested_by: 'webhook',
    created_at: '2026-11-20T10:00:00.000+00:00',
    started_at: null,
    finished_at: null,
    analysis: [],
    ...changes,
  };
}

export async function startJobServer(): Promise<JobServer> {
  const calls: Call[] = [];
  const jobs = new Map<string, { record: JobRecord; version: number }>();
  const streams = new Map<ServerResponse, string>();
  let streamFault: StreamFault | undefined;
  let callFault: Exclude<StreamFault, 'silent'> | undefined;
  let version = 100;

  function put(jobId: string, changes: Partial<JobRecord> = {}): JobRecord {
    version += 1;
    const record = jobRecord(jobId, { ...jobs.get(jobId)?.record, ...changes });
    jobs.set(jobId, { record, version });
    for (const [stream, followed] of streams) if (followed === jobId) send(stream, { record, version });
    return record;
  }

  function stream(jobId: string, request: IncomingMessage, response: ServerResponse): void {
    const job = jobs.get(jobId);
    if (job === undefined) {
      answer(response, 404, { error: 'Job not found', message: `Job '${jobId}' is not known` });
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(streamFault === 'silent' ? '' : 'retry: 1000\n\n');
    response.flushHeaders();
    streams.set(response, streamFault === 'silent' ? '' : jobId);
    response.on('close', () => streams.delete(response));
    if (streamFault !== 'silent' && request.headers['last-event-id'] !== String(job.version)) send(response, job);
  }

  function accept(operation: 'deploy' | 'rollback', body: string): unknown {
    const { service_name, version }: { service_name: string; version: string } = JSON.parse(body);
    const job_id = `${operation}-${service_name}-${version}-1795257600`;
    put(job_id, { service_name, version, operation });
    return {
      status: 'accepted',
      job_id,
      message: `${operation} of '${service_name}' was requested`,
      service_name,
      version,
    };
  }

  function list(search: URLSearchParams): unknown {
    const matching = [...jobs.values()]
      .map(({ record }) => record)
      .filter((job) => job.service_name === (search.get('service_name') ?? job.service_name))
      .filter((job) => job.phase === (search.get('phase') ?? job.phase))
      .toReversed();
    return { jobs: matching.slice(0, Number(search.get('limit') ?? 100)), total: matching.length };
  }

  function command(jobId: string, name: string): { status: number; body: unknown } {
    const { record } = jobs.get(jobId) ?? {};
    if (record === undefined)
      return { status: 404, body: { error: 'Job not found', message: `Job '${jobId}' is not known` } };
    if (finished.has(record.phase))
      return { status: 409, body: { error: 'Job has finished', message: `Job '${jobId}' has finished` } };
    return {
      status: 200,
      body: { status: 'accepted', job_id: jobId, message: `Job '${jobId}': ${name} was requested` },
    };
  }

  function handle({ what, body }: Call, request: IncomingMessage, response: ServerResponse): void {
    const [method = '', target = ''] = what.split(' ');
    const { pathname, searchParams } = new URL(target, 'http://registry');
    const [, jobId = '', action = ''] = pathname
      .split('/')
      .slice(1)
      .map((segment) => decodeURIComponent(segment));
    const fault = action === 'events' && streamFault !== 'silent' ? streamFault : undefined;
    const broken = action === 'events' ? fault : callFault;
    if (broken === 'cut') request.socket.destroy();
    else if (broken !== undefined) answer(response, broken.status, broken.body);
    else if (action === 'events') stream(jobId, request, response);
    else if (method === 'POST' && pathname === '/webhooks/deploy') answer(response, 200, accept('deploy', body));
    else if (method === 'POST' && pathname === '/webhooks/rollback') answer(response, 200, accept('rollback', body));
    else if (method === 'GET' && pathname === '/jobs') answer(response, 200, list(searchParams));
    else if (method === 'POST') {
      const { status, body: result } = command(jobId, action);
      answer(response, status, result);
    } else {
      const job = jobs.get(jobId);
      const missing = { error: 'Job not found', message: `Job '${jobId}' is not known` };
      answer(response, job === undefined ? 404 : 200, job?.record ?? missing);
    }
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const what = `${request.method} ${(request.url ?? '').replace(/^\/api\/v1/, '')}`;
      const call = { what, body: Buffer.concat(chunks).toString(), headers: request.headers };
      calls.push(call);
      handle(call, request, response);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    calls,
    put,
    forget: (jobId) => void jobs.delete(jobId),
    breakStreams(fault) {
      streamFault = fault;
    },
    breakCalls(fault) {
      callFault = fault;
    },
    cutStreams() {
      for (const response of streams.keys()) {
        response.write('id: 1\nevent: job\ndata: {"job_');
        response.socket?.destroySoon();
      }
      streams.clear();
    },
    endStreams() {
      for (const response of streams.keys()) response.end();
      streams.clear();
    },
    streams: () => streams.size,
    resumedFrom: () =>
      calls
        .filter(({ what }) => what.endsWith('/events'))
        .map(({ headers }) => headers['last-event-id'] as string | undefined),
    callsOf: (what) => calls.filter((call) => call.what.startsWith(what)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function send(stream: ServerResponse, job: { record: JobRecord; version: number }): void {
  stream.write(`id: ${job.version}\nevent: job\ndata: ${JSON.stringify(job.record)}\n\n`);
  if (finished.has(job.record.phase)) stream.end();
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
