import { writeFile } from 'node:fs/promises';
import { operations } from '../platform/src/http/scopes.ts';

const file = new URL('../docs/scopes.md', import.meta.url);

/** docs/scopes.md, from the table that gateway and registry ask. */
export function generateScopeDocs(): string {
  const rows = operations.map(({ name, scope, rest, grpc = [], webSocket = [] }) => {
    const columns = [rest, grpc, webSocket].map((entries) => entries.map((entry) => `\`${entry}\``).join(', '));
    return `| ${name} | ${scope === undefined ? 'none' : `\`${scope}\``} | ${columns.join(' | ')} |`;
  });
  return `# Scopes

Generated from platform/src/http/scopes.ts by tools/scope-docs.ts (\`npm run generate\`). Do not
edit.

A client of the gateway needs one scope for each operation of the registry. It is the same scope
by every protocol. The gateway checks it, and the registry checks it again in the identity that the
gateway signs. The scope \`*\` stands for all. A missing scope is 403, \`PERMISSION_DENIED\` over
gRPC, and \`INSUFFICIENT_SCOPE\` for a channel.

Paths are below \`/api/v1/registry\` at the gateway, and below \`/api/v1\` at the registry.

| operation | scope | REST | gRPC, \`rollcall.registry.v1.Registry\` | WebSocket channel |
|---|---|---|---|---|
${rows.join('\n')}

- \`GET /api/metrics\` of the gateway needs \`metrics:read\`.
- gRPC health and reflection, \`/api/ws\` and \`/api/ws/asyncapi.json\` need no scope.
- Service accounts that call the registry directly have no scopes. They own the names that they
  register, and a webhook with a secret needs its signature.
- A scope is printable ASCII without space, \`"\` and \`\\\` (RFC 6749, section 3.3).
- Which scopes a call of a service needs is for its routes and for the service to say.
`;
}

if (import.meta.main) await writeFile(file, generateScopeDocs());
