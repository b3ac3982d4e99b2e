// A sample service: `node sample-service.ts NAME PORT REGISTRY [CAPABILITIES [VERSION]]`, port 0
// for any free one and capabilities separated by commas. It answers HTTP on 127.0.0.1, keeps itself
// registered, reports its version and health, and unregisters when it is asked to stop.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type Registration, register } from '@rollcall/client/registration.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { type Capability, capabilities as known, type RegisteredService } from '@rollcall/client/registry-types.ts';

interface Sample {
  readonly name: string;
  readonly version: string;
  readonly registry: string;
  readonly capabilities: readonly Capability[];
}

/** What the services that contract 3 names answer, by name and path. */
const RESOURCES: Readonly<Record<string, Readonly<Record<string, object>>>> = {
  auth: { '/api/v1/users': { users: [{ id: 'u-1', name: 'Ada' }] } },
  lms: { '/api/v1/courses': { courses: [{ id: 'c-1', title: 'Distributed systems' }] } },
};

const [name = '', port = '', registry = '', capabilityList = '', version = '1.0.0'] = process.argv.slice(2);
const capabilities = known.filter((capability) => capabilityList.split(',').includes(capability));
await run({ name, version, registry, capabilities }, Number(port));

async function run(sample: Sample, port: number): Promise<void> {
  const stopRequested = Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]);
  const server = buildServer(sample);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('A port was asked for');
  const url = `http://127.0.0.1:${address.port}`;
  console.log(`${sample.name} ${sample.version} answers at ${url}`);

  const registration = register({
    servers: sample.registry,
    name: sample.name,
    url,
    capabilities: sample.capabilities,
  });
  reportEvents(registration, sample);
  await stopRequested;
  // First nobody finds it any more, then it stops answering.
  await registration[Symbol.asyncDispose]();
  server.close();
  server.closeIdleConnections();
}

function buildServer({ name, version }: Sample): Server {
  const resources: Readonly<Record<string, object>> = {
    '/': { service: name, version, pid: process.pid },
    '/health': { status: 'healthy' },
    ...RESOURCES[name],
  };
  return createServer(({ url = '', headers }, response) => {
    const body = resources[url.split('?', 1)[0] ?? ''];
    // Who asked, as the gateway says; a service that decides by it verifies `x-rollcall-identity`.
    const subject = headers['x-rollcall-subject'];
    const asked = subject === undefined ? {} : { asked_by: subject };
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify({ ...(body ?? { error: 'Not found' }), ...asked })}\n`);
  });
}

/** What a new registration does not know yet is reported again after every one. */
function reportEvents(registration: Registration, sample: Sample): void {
  registration.on('registered', ({ service, again }) => {
    console.log(again ? 'registered again' : 'registered', service.service_id);
    report(sample, service).catch((error: unknown) => console.error('could not report', error));
  });
  registration.on('lost', ({ reason }) => console.log('lost', reason));
  registration.on('error', ({ error }) => console.error(error));
}

async function report({ registry, version }: Sample, service: RegisteredService): Promise<void> {
  const { service_name, instance_id } = service;
  const instance = { service_name, ...(instance_id === undefined ? {} : { instance_id }) };
  const client = createRegistryClient({ servers: registry });
  const timestamp = new Date().toISOString();
  const details = { version, pid: process.pid };
  await client.reportLifecycle({ ...instance, event: 'started', timestamp, details });
  const uptime = Math.round(process.uptime());
  await client.reportHealth({ ...instance, status: 'healthy', timestamp, details: { version, uptime } });
}
