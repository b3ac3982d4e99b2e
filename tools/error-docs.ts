import { writeFile } from 'node:fs/promises';
import { serverErrors } from '../platform/src/http/errors.ts';
import { errorCatalogue as gatewayErrors } from '../services/gateway/src/errors.ts';
import { errorCatalogue } from '../services/registry/src/common/errors.ts';

const file = new URL('../docs/errors.md', import.meta.url);

/** docs/errors.md, from the error catalogues. */
export function generateErrorDocs(): string {
  const rows = Object.entries(errorCatalogue).map(
    ([code, [status, error, when]]) => `| ${status} | ${error} | ${when} | ${code} |`,
  );
  const general = Object.entries(serverErrors).map(
    ([code, { status, error, when }]) => `| ${status} | ${error} | ${when} | ${code} |`,
  );
  const gateway = Object.entries(gatewayErrors).map(
    ([code, { status, message }]) => `| ${status} | ${code} | ${message} |`,
  );
  return `# Errors

Generated from the error catalogues by tools/error-docs.ts (\`npm run generate\`). Do not edit.

## Registry

Every error answer is \`{"error": <type>, "message": <what is wrong with this request>}\`.

- A heartbeat for a service that is not registered is 400 instead of 404, as the contract has it.
- Each answer has \`x-request-id\`, which the registry's log has as \`reqId\`: the caller's, else a new
  one. A caller's has at most 128 of \`A-Z a-z 0-9 . _ ~ : / + = -\`.
- 429 and 503 come with Retry-After, 405 with Allow.
- OPTIONS is 204 with Allow. HEAD is answered like GET, without the body.

| status | \`error\` | when | code in the source |
| --- | --- | --- | --- |
${rows.join('\n')}

## Gateway

What the gateway itself refuses or cannot do is answered with
\`{"error": {"code": <code>, "message": <what is wrong>, "details": {…}}}\`. Answers of services are
passed on as they are. The token endpoint answers as RFC 6749 has it.

| status | \`code\` | when |
| --- | --- | --- |
${gateway.join('\n')}

## Every server

The same in all processes, in the shape of each. The gateway's \`code\` is in the last column.

| status | \`error\` | when | code in the source |
| --- | --- | --- | --- |
${general.join('\n')}
`;
}

if (import.meta.main) await writeFile(file, generateErrorDocs());
