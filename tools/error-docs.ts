import { writeFile } from 'node:fs/promises';
import { commonErrors } from '../platform/src/common-errors.ts';
import type { ErrorCatalogue } from '../platform/src/errors.ts';
import { streamErrors } from '../platform/src/events/stream-route.ts';
import { webhookErrors } from '../platform/src/events/webhooks/errors.ts';
import { serverErrors } from '../platform/src/http/errors.ts';
import { errorCatalogue as communicationErrors } from '../services/communication/src/errors.ts';
import { errorCatalogue as federationErrors } from '../services/federation/src/errors.ts';
import { errorCatalogue as gatewayErrors } from '../services/gateway/src/errors.ts';
import { errorCatalogue as paymentErrors } from '../services/payment/src/domain/errors.ts';
import { errorCatalogue as registryErrors } from '../services/registry/src/common/errors.ts';

const file = new URL('../docs/errors.md', import.meta.url);

/** docs/errors.md, from the error catalogues. */
export function generateErrorDocs(): string {
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
${rowsOf(registryErrors)}

## Gateway

What the gateway itself refuses or cannot do is answered with
\`{"error": {"code": <code>, "message": <what is wrong>, "details": {…}}}\`. Answers of services are
passed on as they are. The token endpoint answers as RFC 6749 has it.

| status | when | \`code\` |
| --- | --- | --- |
${rowsOf(gatewayErrors)}

## Communication

In the shape of the gateway's, beside what follows for communication and payment.

| status | when | \`code\` |
| --- | --- | --- |
${rowsOf(communicationErrors)}

## Payment

Likewise.

| status | when | \`code\` |
| --- | --- | --- |
${rowsOf(paymentErrors)}

## Federation

Likewise.

| status | when | \`code\` |
| --- | --- | --- |
${rowsOf(federationErrors)}

## Communication and payment

| status | when | \`code\` |
| --- | --- | --- |
${rowsOf({ ...commonErrors, ...webhookErrors, ...streamErrors })}

## Every server

The same in all processes, in the shape of each. The gateway's \`code\` is in the last column.

| status | \`error\` | when | code in the source |
| --- | --- | --- | --- |
${rowsOf(serverErrors)}
`;
}

function rowsOf(catalogue: ErrorCatalogue): string {
  return Object.entries(catalogue)
    .map(
      ([code, { status, error, message }]) =>
        `| ${[status, ...(error === undefined ? [] : [error]), message, code].join(' | ')} |`,
    )
    .join('\n');
}

if (import.meta.main) await writeFile(file, generateErrorDocs());
