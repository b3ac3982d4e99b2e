import { writeFile } from 'node:fs/promises';
import { communicationOperations } from '../platform/src/http/operations/communication.ts';
import { federationOperations } from '../platform/src/http/operations/federation.ts';
import type { Operation } from '../platform/src/http/operations/operation.ts';
import { paymentOperations } from '../platform/src/http/operations/payment.ts';
import { registryOperations } from '../platform/src/http/operations/registry.ts';

const file = new URL('../docs/scopes.md', import.meta.url);

const columns = {
  rest: 'REST',
  grpc: 'gRPC, `rollcall.registry.v1.Registry`',
  graphql: 'GraphQL',
  webSocket: 'WebSocket channel',
} as const;

type Column = keyof typeof columns;

/** docs/scopes.md, from the tables that the gateway and the services ask. */
export function generateScopeDocs(): string {
  return `# Scopes

Generated from platform/src/http/operations by tools/scope-docs.ts (\`npm run generate\`). Do not
edit.

A client of the gateway needs one scope for each operation of Rollcall's own services. It is the
same scope by every protocol. The gateway checks it, and the service checks it again in the identity
that the gateway signs. The scope \`*\` stands for all. A missing scope is 403, \`PERMISSION_DENIED\`
over gRPC, and \`INSUFFICIENT_SCOPE\` for a channel.

Paths are below \`/api/v1/<service>\` at the gateway, and below \`/api/v1\` at the service.

- \`GET /api/metrics\` of the gateway needs \`metrics:read\`.
- gRPC health and reflection, \`/api/ws\` and \`/api/ws/asyncapi.json\` need no scope.
- A scope is printable ASCII without space, \`"\` and \`\\\` (RFC 6749, section 3.3).
- Which scopes a call of another service needs is for its routes and for the service to say.

## Registry

${table(registryOperations, ['rest', 'grpc', 'webSocket'])}

Service accounts that call the registry directly have no scopes. They own the names that they
register, and a webhook with a secret needs its signature.

## Communication

${table(communicationOperations, ['rest', 'graphql', 'webSocket'])}

${administrators('messages', 'templates', 'suppressions')}

## Payment

${table(paymentOperations, ['rest', 'graphql', 'webSocket'])}

${administrators('payments', 'billing')}

## Federation

Paths are below \`/api\` at the service, and below \`/api/v1/federation\` at the gateway. What a query
of the graph needs is what its fields need.

${table(federationOperations, ['rest'])}

## GraphQL

The endpoint of communication and payment is \`/api/graphql\` at the service, and
\`/api/v1/<service>/graphql\` at the gateway. The graph of all services is the gateway's
\`/api/graphql\`. The gateway needs a token for each. The service checks the scope of each field that
a request names, and refuses that field alone.
`;
}

function table(operations: readonly Operation[], shown: readonly Column[]): string {
  const rows = operations.map((operation) => {
    const entries = shown.map((column) => (operation[column] ?? []).map((entry) => `\`${entry}\``).join(', '));
    const { name, scope } = operation;
    return `| ${name} | ${scope === undefined ? 'none' : `\`${scope}\``} | ${entries.join(' | ')} |`;
  });
  const head = ['operation', 'scope', ...shown.map((column) => columns[column])];
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows].join('\n');
}

function administrators(...areas: readonly string[]): string {
  const scopes = areas.map((area) => `\`${area}:admin\``);
  return `What belongs to another subject is not found, unless the caller also has
${scopes.join(' or ')} for its area.`;
}

if (import.meta.main) await writeFile(file, generateScopeDocs());
